#include "cli/backend.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs/verbs.h"
#include "model/model_checkpoints.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kScoreExamples =
    "Writes the natural log-probability of each target line given its source\n"
    "line, one a line, and in the last line 'total', a tab and their sum. A "
    "line\n"
    "that is not UTF-8 or too long for the model fails: it gives 'nan', so "
    "does\n"
    "the total, and the exit code is 1.\n"
    "\n"
    "Examples:\n"
    "  seqconv score --model runs/numbers --source in.txt --target out.txt\n"
    "  seqconv score --model a --source s --target t | tail -n 1\n"
    "  seqconv score --model a --source test.de.bin --target test.en.bin";

struct ScoreFlags {
  ScoreArguments arguments;
  std::string checkpoint = kBestCheckpoint;
  BackendFlags backend;
};

}  // namespace

void add_score(Program& program) {
  auto flags = std::make_shared<ScoreFlags>();
  ScoreArguments& arguments = flags->arguments;
  CLI::App& verb = program.add_verb("score", "Score given sentence pairs", kScoreExamples);
  add_model(verb, arguments.model);
  add_checkpoint(verb, flags->checkpoint);
  verb.add_option("--source", arguments.source, "Source lines, or binarised (.bin)")
      ->type_name("FILE")
      ->required();
  verb.add_option("--target", arguments.target, "Target lines, or binarised (.bin)")
      ->type_name("FILE")
      ->required();
  add_integer(
      verb,
      "--batch-tokens",
      arguments.batch_tokens,
      "Most source tokens of a batch, padding counted",
      1);
  add_strict(verb, arguments.strict);
  add_backend(verb, flags->backend);
  verb.callback([&program, flags] {
    program.run = [&program, flags] {
      flags->arguments.model = choose_checkpoint(flags->arguments.model, flags->checkpoint);
      flags->arguments.workers = workers(flags->backend);
      verbs::score(flags->arguments, backend(flags->backend), program.out);
    };
  });
}

}  // namespace seqconv::internal::cli
