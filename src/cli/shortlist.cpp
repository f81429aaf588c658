#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs/verbs.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kShortlistExamples =
    "Line by line the target is the translation of the source: the text of "
    "the\n"
    "training, or some of it. What is learned says which words the translation "
    "of\n"
    "a sentence may hold; the model itself stays as it is.\n"
    "\n"
    "Examples:\n"
    "  seqconv shortlist --model runs/de-en --source train.de \\\n"
    "    --target train.en --output de-en.shortlist\n"
    "  seqconv translate --model runs/de-en --shortlist de-en.shortlist \\\n"
    "    < input.txt";

struct ShortlistFlags {
  ShortlistArguments arguments;
  std::unique_ptr<FlagVisitor> options;
};

}  // namespace

void add_shortlist(Program& program) {
  auto flags = std::make_shared<ShortlistFlags>();
  ShortlistArguments& arguments = flags->arguments;
  CLI::App& verb = program.add_verb(
      "shortlist",
      "Learn which words a translation may hold, for faster translating",
      kShortlistExamples);
  add_model(verb, arguments.model);
  add_repeated(verb, "--source", arguments.sources, "Source text, or binarised (.bin)")
      ->type_name("FILE")
      ->required();
  add_repeated(
      verb, "--target", arguments.targets, "Target text, or binarised (.bin), as many files")
      ->type_name("FILE")
      ->required();
  verb.add_option("-o,--output", arguments.output, "File to write")->type_name("FILE")->required();
  flags->options = std::make_unique<FlagVisitor>(verb, "Learning");
  arguments.options.visit(*flags->options);
  verb.callback([&program, flags] {
    program.run = [flags] {
      flags->arguments.names = OptionNames(flags->options->names());
      verbs::shortlist(flags->arguments);
    };
  });
}

}  // namespace seqconv::internal::cli
