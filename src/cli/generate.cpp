#include "base/error.h"
#include "base/utf8.h"
#include "cli/backend.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs/verbs.h"
#include "model/model_checkpoints.h"
#include "text/packed_text.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kGenerateExamples =
    "Writes the prompt and what the model goes on with, as it comes. The same\n"
    "seed gives the same text. For models without attention, speed and memory\n"
    "do not depend on the length.\n"
    "\n"
    "Examples:\n"
    "  seqconv generate --model runs/lm --prompt 'The house'\n"
    "  seqconv generate --model runs/lm --prompt-file begin.txt --length 1000\n"
    "  seqconv generate --model runs/lm --temperature 0.8 --top-p 0.95 --seed 7";

struct GenerateFlags {
  GenerateArguments arguments;
  BackendFlags backend;
  std::string checkpoint = kBestCheckpoint;
  std::string prompt_file;
  std::unique_ptr<FlagVisitor> sampling;
};

void run_generate(GenerateFlags& flags, std::ostream& out) {
  if (!flags.prompt_file.empty()) {
    if (!flags.arguments.prompt.empty())
      fail_usage("--prompt and --prompt-file both give the prompt; give one");
    flags.arguments.prompt = skip_byte_order_mark(read_text_file(flags.prompt_file));
  }
  flags.arguments.model = choose_checkpoint(flags.arguments.model, flags.checkpoint);
  flags.arguments.workers = workers(flags.backend);
  auto names = flags.sampling->names();
  names["length"] = "--length";
  flags.arguments.names = OptionNames(std::move(names));
  verbs::generate(flags.arguments, backend(flags.backend), out);
}

}  // namespace

void add_generate(Program& program) {
  auto flags = std::make_shared<GenerateFlags>();
  GenerateArguments& arguments = flags->arguments;
  CLI::App& verb =
      program.add_verb("generate", "Write text with a language model", kGenerateExamples);
  add_model(verb, arguments.model);
  add_checkpoint(verb, flags->checkpoint);
  verb.add_option("-p,--prompt", arguments.prompt, "Text to go on with [none]")->type_name("TEXT");
  verb.add_option("--prompt-file", flags->prompt_file, "File with the text to go on with")
      ->type_name("FILE");
  add_integer(verb, "--length", arguments.length, "Tokens to write", 1);
  add_integer(
      verb, "--seed", arguments.seed, "Seed of the draws", 0, std::numeric_limits<int64_t>::max());
  flags->sampling = std::make_unique<FlagVisitor>(verb, "Sampling");
  visit_options(arguments.sampling, *flags->sampling);
  verb.add_flag("--stats", arguments.stats, "Tokens and their rate on standard error at the end");
  add_backend(verb, flags->backend);
  verb.callback([&program, flags] {
    program.run = [&program, flags] { run_generate(*flags, program.out); };
  });
}

}  // namespace seqconv::internal::cli
