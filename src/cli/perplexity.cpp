#include <iostream>

#include "cli/backend.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs/verbs.h"
#include "model/model_checkpoints.h"
#include "text/packed_text.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kPerplexityExamples =
    "Reads a text and writes what it costs under a language\n"
    "model, by token, word, character and byte. A line's end is predicted as\n"
    "well and counts as one of each. The text is cut as the training text was\n"
    "(data.samples); with --context-window W a block begins with a second\n"
    "reading of the W tokens before it, which are not counted again.\n"
    "A line that cannot be measured is left out; 'failed_lines' counts such\n"
    "lines, and the exit code is 1.\n"
    "\n"
    "Examples:\n"
    "  seqconv perplexity --model runs/lm < test.txt\n"
    "  seqconv perplexity --model runs/lm --context-window 256 < test.txt\n"
    "  seqconv perplexity --model runs/lm --input test.bin --format json";

struct PerplexityFlags {
  PerplexityArguments arguments;
  std::string checkpoint = kBestCheckpoint;
  BackendFlags backend;
};

}  // namespace

void add_perplexity(Program& program) {
  auto flags = std::make_shared<PerplexityFlags>();
  PerplexityArguments& arguments = flags->arguments;
  CLI::App& verb =
      program.add_verb("perplexity", "Measure a text under a language model", kPerplexityExamples);
  add_model(verb, arguments.model);
  add_checkpoint(verb, flags->checkpoint);
  verb.add_option(
          "--input",
          arguments.input,
          R"(Text, or fairseq's binarised data (.bin, .idx), instead of standard input)")
      ->type_name("FILE");
  add_integer(
      verb,
      "--block",
      arguments.block,
      "Tokens that the model sees at a time, 0 = as it was trained",
      0);
  add_integer(
      verb,
      "--context-window",
      arguments.context_window,
      "Tokens of a block that were counted before and are only read again",
      0);
  add_choice(verb, "--format", arguments.format, "text or json");
  add_integer(
      verb, "--batch-tokens", arguments.batch_tokens, "Most tokens of a batch, padding counted", 1);
  add_strict(verb, arguments.strict);
  add_backend(verb, flags->backend);
  verb.callback([&program, flags] {
    program.run = [&program, flags] {
      flags->arguments.model = choose_checkpoint(flags->arguments.model, flags->checkpoint);
      flags->arguments.workers = workers(flags->backend);
      flags->arguments.names = OptionNames(
          {{"block", "--block"},
           {"context_window", "--context-window"},
           {"batch_tokens", "--batch-tokens"}});
      PackedText in(std::cin, "standard input");
      verbs::perplexity(flags->arguments, backend(flags->backend), in, program.out);
    };
  });
}

}  // namespace seqconv::internal::cli
