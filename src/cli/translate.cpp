#include <algorithm>

#include "cli/program.h"
#include "cli/translation_flags.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kTranslateExamples =
    "Reads one sentence a line from standard input and writes one translation\n"
    "a line to standard output, in the order of the input; an empty line "
    "gives\n"
    "an empty line.\n"
    "\n"
    "Examples:\n"
    "  seqconv translate --model runs/numbers < input.txt > output.txt\n"
    "  seqconv translate --model a --model b --beam 8 < input.txt\n"
    "  seqconv translate --model a --input test.de-en.de.bin > output.txt\n"
    "  seqconv translate --model a --n-best 5 --format json < input.txt\n"
    "  seqconv translate --model a --shortlist a.shortlist < input.txt\n"
    "  seqconv translate --model a --terminology terms.tsv < input.txt\n"
    "  seqconv translate --model a --sample --temperature 0.8 < input.txt\n"
    "  seqconv translate --model a --input in.txt --output out.txt --shard "
    "1/8\n"
    "  mpirun -np 8 seqconv translate --model a --input in.txt --output "
    "out.txt\n"
    "  echo '{\"text\": \"zwei\", \"target_prefix\": \"t\", \"id\": 7}' |\n"
    "    seqconv translate --model a --json-input --format json\n"
    "\n"
    "Text with --n-best above 1: NUMBER<tab>SCORE<tab>TRANSLATION, NUMBER "
    "being\n"
    "that of the input line, from 1. JSON: one object a line with \"text\" "
    "and\n"
    "\"translations\", a list of {text, tokens, score, log_probability,\n"
    "token_scores}; --json-input keeps all fields of its objects as they are.\n"
    "SCORE is the natural log-probability divided by length^length-penalty.\n"
    "--alignments adds \" ||| 0-0 1-2\" to a translation: source token 0 belongs\n"
    "to its token 0, 1 to 2; in JSON also the bytes of each token.\n"
    "\n"
    "--output FILE appears when it is complete; until then FILE.parts holds "
    "what "
    "is\n"
    "done, and the same command goes on with it. --shard translates a part of "
    "the\n"
    "input; the last part that is done joins them to what one process writes. "
    "See\n"
    "docs/scaling.md.\n"
    "\n"
    "A line that is no such object fails: it gives an empty line or, as JSON, "
    "an\n"
    "object with \"error\" and \"line\". The others are translated, and the "
    "exit "
    "code\n"
    "is 1.";

}  // namespace

void add_translate(Program& program) {
  auto flags = std::make_shared<TranslateFlags>();
  TranslateArguments& arguments = flags->arguments;
  CLI::App& verb = program.add_verb(
      "translate", "Translate lines of standard input or of a file", kTranslateExamples);
  add_translation_flags(verb, *flags);
  add_choice(verb, "--format", arguments.format, "text or json")->group("Input and output");
  verb.add_flag(
          "--json-input",
          arguments.json_input,
          R"(Input lines are objects with "text", maybe "target_prefix" and options)")
      ->group("Input and output");
  verb.add_option(
          "--terminology",
          arguments.terminology,
          R"(Lines SOURCE<tab>TARGET: translations hold the TARGET of each SOURCE of their line)")
      ->type_name("FILE")
      ->group("Search");
  auto* const pairs = verb.add_flag_callback(
      "--alignments",
      [&arguments] { arguments.alignments = std::max(arguments.alignments, Alignments::kPairs); },
      R"(Tell which source tokens each token comes from, behind " ||| " or in JSON)");
  auto* const shares = verb.add_flag_callback(
      "--source-shares",
      [&arguments] { arguments.alignments = Alignments::kShares; },
      "--alignments, and how much each token looked at each source token: JSON");
  for (CLI::Option* option : {pairs, shares})
    option->group("Input and output");
  verb.callback([&program, flags] {
    if (flags->arguments.alignments == Alignments::kShares &&
        flags->arguments.format != OutputFormat::kJson)
      fail_usage("--source-shares needs --format json");
    if (!flags->arguments.terminology.empty() && flags->sample)
      fail_usage("--terminology is for searches, but --sample was given");
    program.run = [&program, flags] { run_translation(*flags, program.out); };
  });
}

}  // namespace seqconv::internal::cli
