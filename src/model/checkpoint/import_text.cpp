#include "model/checkpoint/import_text.h"

#include "base/error.h"
#include "base/log.h"

namespace seqconv::internal {
namespace {

int64_t first_size(const StridedTensor& tensor) {
  return tensor.shape.empty() ? 0 : tensor.shape[0];
}

/// The name of an embedding whose rows are the symbols of a side, and their
/// number.
std::pair<std::string, int64_t> embedding_rows(
    const FairseqCheckpoint& checkpoint, const std::string& side) {
  const std::string tokens = side + ".embed_tokens.";
  int64_t rows = 0;
  for (int64_t band = 0;; ++band) {
    const auto found = checkpoint.tensors().find(concat(tokens, "embeddings.", band, ".0.weight"));
    if (found == checkpoint.tensors().end())
      break;
    rows += first_size(found->second);
  }
  if (rows > 0)
    return {tokens + "embeddings", rows};
  return {tokens + "weight", first_size(checkpoint.read(tokens + "weight"))};
}

void check_vocabulary(
    const FairseqCheckpoint& checkpoint,
    const std::string& side,
    const std::string& dictionary,
    int64_t size) {
  const auto [name, rows] = embedding_rows(checkpoint, side);
  SEQCONV_CHECK(
      rows == size,
      dictionary,
      ": wrong dictionary for this checkpoint: it has ",
      size,
      " symbols (the four special ones counted), but '",
      name,
      "' of ",
      checkpoint.where(),
      " has ",
      rows,
      " rows");
}

/// Lines for the self-test of the model folder, made of the vocabulary's own
/// symbols: the most frequent ones, and some rarer.
std::vector<std::string> sample_lines(const TextPipeline& pipeline) {
  constexpr int32_t kFirst = 4;
  constexpr int32_t kSymbols = 12;
  const auto size = static_cast<int32_t>(pipeline.vocabulary().size());
  std::vector<std::string> lines;
  for (const int32_t begin : {kFirst, size / 2}) {
    std::vector<int32_t> ids;
    for (int32_t id = begin; id < size && id < begin + kSymbols; ++id)
      ids.push_back(id);
    lines.push_back(pipeline.decode(ids));
  }
  return lines;
}

void need_dictionary(const std::string& file, const char* flag, Task task) {
  if (file.empty())
    fail_usage(
        "the checkpoint holds a ",
        task == Task::kTranslation ? "translation" : "language",
        " model, which needs ",
        flag);
}

void need_language(const TextOptions& options, const std::string& language, const char* flag) {
  if (options.tokenizer == Tokenizer::kMoses && language.empty())
    fail_usage("--tokenizer moses needs ", flag, ", a code such as de");
}

}  // namespace

TranslationText import_text(
    TextOptions options, const FairseqCheckpoint& checkpoint, const ModelOptions& model) {
  if (!options.dictionary.empty())
    fail_usage(
        "--dictionary is for language models, but ",
        checkpoint.where(),
        " holds a translation model: give --source-dictionary and --target-dictionary");
  options.subword_fallback = false;  // fairseq knows none
  constexpr Task kTask = Task::kTranslation;
  need_dictionary(options.source_dictionary, "--source-dictionary", kTask);
  need_dictionary(options.target_dictionary, "--target-dictionary", kTask);
  need_language(options, options.source_language, "--source-language");
  need_language(options, options.target_language, "--target-language");
  options.joined = Vocabulary::load(options.source_dictionary).to_text() ==
      Vocabulary::load(options.target_dictionary).to_text();
  TranslationText text = TranslationText::given(options);
  check_vocabulary(
      checkpoint, "encoder", options.source_dictionary, text.source->vocabulary().size());
  check_vocabulary(
      checkpoint, "decoder", options.target_dictionary, text.target->vocabulary().size());
  if (checkpoint.source_cut() > 0) {
    text.max_source_tokens =
        std::min(checkpoint.source_cut(), model.max_positions_of(model.encoder));
    log_info(
        "  text.max_source_tokens = ",
        text.max_source_tokens,
        " (stored argument truncate_source)");
  }
  text.source_samples = sample_lines(*text.source);
  text.target_samples = sample_lines(*text.target);
  return text;
}

LanguageText import_language_text(TextOptions options, const FairseqCheckpoint& checkpoint) {
  if (!options.source_dictionary.empty() || !options.target_dictionary.empty())
    fail_usage(
        "--source-dictionary and --target-dictionary are for translation models, but ",
        checkpoint.where(),
        " holds a language model: give --dictionary");
  need_dictionary(options.dictionary, "--dictionary", Task::kLanguageModel);
  need_language(options, options.language, "--language");
  options.subword_fallback = false;
  LanguageText text = LanguageText::given(options);
  check_vocabulary(checkpoint, "decoder", options.dictionary, text.text->vocabulary().size());
  text.knows_unknown = true;  // fairseq's models have one in every dictionary
  text.samples = sample_lines(*text.text);
  return text;
}

}  // namespace seqconv::internal
