#include "seqconv/text/bpe.h"

#include <iostream>

#include "flags.h"
#include "program.h"
#include "seqconv/base/error.h"
#include "seqconv/text/bpe_trainer.h"
#include "seqconv/text/unicode.h"

namespace seqconv::cli {
namespace {

constexpr const char* kBpeExamples =
    "The files are those of the subword-nmt package, byte for byte.\n"
    "\n"
    "Examples:\n"
    "  seqconv bpe learn --merges 8000 train.de train.en > codes\n"
    "  seqconv bpe apply --codes codes < test.de > test.bpe.de";

struct Learn {
  int64_t merges = 0;
  int64_t min_frequency = 2;
  std::vector<std::string> files;
};

void learn(const Learn& flags, std::ostream& out) {
  if (!flags.files.empty()) {
    out << learn_bpe(flags.files, flags.merges, flags.min_frequency);
    return;
  }
  LineReader reader(std::cin, "standard input", BadBytes::kReject);
  WordCounts counts;
  for (std::string line; reader.next(line);)
    count_words(line, counts);
  out << learn_bpe(counts, flags.merges, flags.min_frequency);
}

void apply_codes(const std::string& codes, std::ostream& out) {
  const Bpe bpe = Bpe::load(codes);
  LineReader reader(std::cin, "standard input", BadBytes::kReject);
  for (std::string line; reader.next(line);)
    out << bpe.segment_line(line) << '\n';
}

void add_learn(CLI::App& bpe, Program& program) {
  auto flags = std::make_shared<Learn>();
  CLI::App& verb = *bpe.add_subcommand(
      "learn",
      "Learn merges from text files (or standard input), write codes");
  verb.fallthrough();
  add_integer(verb, "--merges", flags->merges, "Number of merges to learn", 1)
      ->default_str("")
      ->required();
  add_integer(
      verb,
      "--min-frequency",
      flags->min_frequency,
      "Stop at pairs rarer than this",
      1);
  verb.add_option("FILE", flags->files, "Text, words split at blanks");
  verb.callback([&program, flags] {
    program.run = [&program, flags] { learn(*flags, program.out); };
  });
}

void add_apply(CLI::App& bpe, Program& program) {
  auto codes = std::make_shared<std::string>();
  CLI::App& verb = *bpe.add_subcommand(
      "apply",
      "Split the words of standard input by learned codes");
  verb.fallthrough();
  verb.add_option("--codes", *codes, "Codes file")
      ->type_name("FILE")
      ->required();
  verb.callback([&program, codes] {
    program.run = [&program, codes] { apply_codes(*codes, program.out); };
  });
}

}  // namespace

void add_bpe(Program& program) {
  CLI::App& verb = program.add_verb(
      "bpe",
      "Learn and apply byte-pair encodings",
      kBpeExamples);
  verb.require_subcommand(0, 1);
  verb.callback([&verb] {
    if (verb.get_subcommands().empty())
      fail_usage("bpe needs a verb of its own: learn or apply");
  });
  add_learn(verb, program);
  add_apply(verb, program);
}

}  // namespace seqconv::cli
