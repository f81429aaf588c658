#include "model/checkpoint/import.h"

#include <filesystem>
#include <memory>

#include "cli/configurations.h"
#include "cli/flags.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kImportExamples =
    "Reads LightConv, DynamicConv and TaLK models: what fairseq and the TaLK\n"
    "repository have written, old files and new ones. Nothing in a file is\n"
    "executed. The result is an ordinary model folder; with a tokenizer and\n"
    "subword codes it translates raw text.\n"
    "\n"
    "Examples:\n"
    "  seqconv import --checkpoint model.pt --source-dictionary dict.de.txt "
    "\\\n"
    "    --target-dictionary dict.en.txt --bpe-codes code --tokenizer moses "
    "\\\n"
    "    --source-language de --target-language en --output models/de-en\n"
    "  seqconv import --checkpoint lm.pt --dictionary dict.txt -o models/lm\n"
    "  seqconv import --checkpoint last10/*.pt --source-dictionary ...";

struct ImportFlags {
  ImportRequest request;
  bool ema = false;
  std::string preset;
  std::map<std::string, std::string> names;  // of text, by its keys
};

void run_import(ImportFlags flags) {
  ImportRequest& request = flags.request;
  request.weights = flags.ema ? CheckpointWeights::kEma : CheckpointWeights::kTrained;
  TextOptions& text = request.text;
  if (!text.bpe_codes.empty() && !text.sentencepiece_model.empty())
    fail_usage(
        "--bpe-codes and --sentencepiece contradict each other: a model has one kind of subwords");
  text.subword = !text.bpe_codes.empty()  ? Subword::kBpe
      : !text.sentencepiece_model.empty() ? Subword::kSentencePiece
                                          : Subword::kNone;
  text.validate(OptionNames(flags.names));
  if (!flags.preset.empty())
    request.preset = read_preset(flags.preset);
  import_checkpoint(request);
}

void add_text(CLI::App& verb, ImportFlags& flags) {
  TextOptions& text = flags.request.text;
  flags.names = {
      {"tokenizer", "--tokenizer"},
      {"source_language", "--source-language"},
      {"target_language", "--target-language"},
      {"language", "--language"},
      {"moses_escape", "--moses-escape"},
      {"moses_split_dashes", "--moses-split-dashes"},
      {"bpe_codes", "--bpe-codes"},
      {"sentencepiece_model", "--sentencepiece"},
      {"lowercase", "--lowercase"},
      {"source_dictionary", "--source-dictionary"},
      {"target_dictionary", "--target-dictionary"},
      {"dictionary", "--dictionary"}};
  const auto file = [&](const char* flag, std::string& value, const char* help) {
    verb.add_option(flag, value, help)->type_name("FILE")->group("Text");
  };
  file("--source-dictionary", text.source_dictionary, "dict.txt of the source");
  file("--target-dictionary", text.target_dictionary, "dict.txt of the target");
  file("--dictionary", text.dictionary, "dict.txt of a language model");
  file(
      "--bpe-codes",
      text.bpe_codes,
      "Merges of subword-nmt; without them text is in the model's own symbols");
  file("--sentencepiece", text.sentencepiece_model, "Model of SentencePiece");
  add_choice(verb, "--tokenizer", text.tokenizer, "none (the text is tokenised already) or moses")
      ->group("Text");
  const auto language = [&](const char* flag, std::string& value, const char* help) {
    verb.add_option(flag, value, help)->type_name("CODE")->group("Text");
  };
  language("--source-language", text.source_language, "moses: of the source");
  language("--target-language", text.target_language, "moses: of the target");
  language("--language", text.language, "moses: of a language model");
  verb.add_flag(
          "--moses-escape",
          text.moses_escape,
          R"(moses: tokens with &apos; and the like, as most published models have them)")
      ->group("Text");
  verb.add_flag(
          "--moses-split-dashes",
          text.moses_split_dashes,
          "moses: a-b becomes a @-@ b, as in the WMT models")
      ->group("Text");
  verb.add_flag("--lowercase", text.lowercase, "Lower-case text first")->group("Text");
}

}  // namespace

void add_import(Program& program) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App& verb = program.add_verb(
      "import", "Make a model folder of a fairseq or TaLK checkpoint", kImportExamples);
  ImportRequest& request = flags->request;
  verb.add_option("-c,--checkpoint", request.checkpoints, "Checkpoint; the mean of several")
      ->type_name("FILE")
      ->required();
  verb.add_option("-o,--output", request.output, "Model folder to write")
      ->type_name("DIR")
      ->required();
  verb.add_flag(
      "--ema", flags->ema, "Take the moving average of the weights that the checkpoint holds");
  verb.add_option(
          "--preset",
          flags->preset,
          R"(What the checkpoint does not say: a configuration (lightconv_wmt_en_de_big) or file)")
      ->type_name("NAME");
  add_text(verb, *flags);
  verb.callback([&program, flags] { program.run = [flags] { run_import(*flags); }; });
}

}  // namespace seqconv::internal::cli
