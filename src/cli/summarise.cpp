#include "cli/program.h"
#include "cli/translation_flags.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kSummariseExamples =
    "Reads one document a line and writes one summary a line, in the order of "
    "the\n"
    "input; an empty document has an empty summary. A line is a text, a JSON "
    "object\n"
    "or the name of a story file, as the model was trained or --input-format "
    "says.\n"
    "\n"
    "Examples:\n"
    "  seqconv summarise --model runs/dialogues < test.jsonl > out.jsonl\n"
    "  seqconv summarise --model a --input-format text < documents.txt\n"
    "  seqconv summarise --model a --source-key article.body < news.jsonl\n"
    "  seqconv summarise --model a --stories cnn/stories < test.list\n"
    "  seqconv evaluate rouge --hypotheses out.jsonl --hypothesis-key "
    "summary_text \\\n"
    "    --reference test.jsonl --reference-key summary\n"
    "\n"
    "JSON: all fields of an object are kept as they are, and the summary comes "
    "last,\n"
    "its sentences as lines; with --n-best above 1 it is a list. A story is an "
    "object\n"
    "with \"id\", \"article\" and \"highlights\". Text: U+2424 stands between "
    "sentences,\n"
    "--n-best writes NUMBER<tab>SCORE<tab>SUMMARY.\n"
    "\n"
    "A line that is no such document fails: it gives an empty line or an "
    "object with\n"
    "\"error\" and \"line\". The others are summarised, and the exit code is 1.";

struct SummariseFlags : TranslateFlags {
  SummaryOptions summary;
  TextFormat input_format = TextFormat::kText;
  OutputFormat format = OutputFormat::kText;
  CLI::Option* input_format_given = nullptr;
  CLI::Option* format_given = nullptr;
};

void run_summarise(SummariseFlags& flags, std::ostream& out) {
  if (flags.input_format_given->count() > 0)
    flags.summary.input_format = flags.input_format;
  if (flags.format_given->count() > 0)
    flags.summary.format = flags.format;
  flags.arguments.summary = flags.summary;
  run_translation(flags, out);
}

/// What documents and summaries are.
void add_document_flags(CLI::App& verb, SummariseFlags& flags) {
  const char* const group = "Input and output";
  flags.input_format_given = add_choice(
                                 verb,
                                 "--input-format",
                                 flags.input_format,
                                 "What a line is: text, json, story (a file's name) [the model's]")
                                 ->default_str("")
                                 ->group(group);
  verb.add_option(
          "--source-key",
          flags.summary.source_key,
          "json: the key of the document, nested by dots [the model's]")
      ->type_name("KEY")
      ->group(group);
  add_repeated(
      verb,
      "--stories",
      flags.summary.stories,
      "story: a folder of the files; the first that has one gives it")
      ->type_name("DIR")
      ->group(group);
  verb.add_option("--summary-key", flags.summary.summary_key, "The key of the summary in JSON")
      ->type_name("KEY")
      ->default_str(flags.summary.summary_key)
      ->group(group);
  flags.format_given =
      add_choice(verb, "--format", flags.format, "text or json [json where the input is]")
          ->default_str("")
          ->group(group);
}

}  // namespace

void add_summarise(Program& program) {
  auto flags = std::make_shared<SummariseFlags>();
  CLI::App& verb = program.add_verb(
      "summarise", "Summarise documents of standard input or of a file", kSummariseExamples);
  add_translation_flags(verb, *flags);
  add_document_flags(verb, *flags);
  verb.callback([&program, flags] {
    program.run = [&program, flags] { run_summarise(*flags, program.out); };
  });
}

}  // namespace seqconv::internal::cli
