#include "text/bpe.h"

#include <iostream>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/parse_errors.h"
#include "cli/program.h"
#include "text/bpe_trainer.h"
#include "text/line_reader.h"
#include "text/packed_text.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kBpeExamples =
    "The files are those of the subword-nmt package, byte for byte; "
    "docs/tokenization.md\n"
    "has the exceptions. --vocabulary takes a dict.txt, or words and counts:\n"
    "  tr ' ' '\\n' < train.bpe.de | grep . | sort | uniq -c | awk '{print $2, "
    "$1}'\n"
    "\n"
    "Examples:\n"
    "  seqconv bpe learn --merges 8000 train.de train.en > codes\n"
    "  seqconv bpe apply --codes codes < test.de > test.bpe.de\n"
    "  seqconv bpe apply --codes codes --vocabulary vocabulary.de \\\n"
    "    --vocabulary-threshold 50 --glossaries '<[a-z]+>' < test.de\n"
    "  seqconv bpe apply --codes codes --dropout 0.1 --seed 3 < train.de";

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
  PackedText in(std::cin, "standard input");
  LineReader reader(in, "standard input", BadBytes::kReject);
  WordCounts counts;
  for (std::string line; reader.next_with_end(line);)
    count_words(line, counts);
  out << learn_bpe(counts, flags.merges, flags.min_frequency);
}

struct Apply {
  std::string codes;
  std::string vocabulary;
  int64_t threshold = 0;
  int64_t seed = BpeOptions().seed;
  BpeOptions options;
};

void apply_codes(const Apply& flags, std::ostream& out) {
  BpeOptions options = flags.options;
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail_usage("--dropout must be a probability from 0 to 1, but got ", options.dropout);
  options.seed = static_cast<uint32_t>(flags.seed);
  if (!flags.vocabulary.empty())
    options.vocabulary = read_bpe_vocabulary(flags.vocabulary, flags.threshold);
  const Bpe bpe = Bpe::load(flags.codes, options);
  PackedText in(std::cin, "standard input");
  LineReader reader(in, "standard input", BadBytes::kReject);
  for (std::string line; reader.next_with_end(line);)
    out << bpe.segment_line(line);
}

void add_learn(CLI::App& bpe, Program& program) {
  auto flags = std::make_shared<Learn>();
  CLI::App& verb =
      *bpe.add_subcommand("learn", "Learn merges from text files (or standard input), write codes");
  verb.fallthrough();
  add_integer(verb, "--merges", flags->merges, "Number of merges to learn", 1)
      ->default_str("")
      ->required();
  add_integer(verb, "--min-frequency", flags->min_frequency, "Stop at pairs rarer than this", 1);
  verb.add_option("FILE", flags->files, "Text, words split at blanks");
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { learn(*flags, program.out); }; });
}

void add_apply(CLI::App& bpe, Program& program) {
  auto flags = std::make_shared<Apply>();
  CLI::App& verb =
      *bpe.add_subcommand("apply", "Split the words of standard input by learned codes");
  verb.fallthrough();
  verb.add_option("--codes", flags->codes, "Codes file")->type_name("FILE")->required();
  CLI::Option* vocabulary = verb.add_option(
                                    "--vocabulary",
                                    flags->vocabulary,
                                    "Pieces and their counts: what is not there is split again")
                                ->type_name("FILE");
  add_integer(
      verb,
      "--vocabulary-threshold",
      flags->threshold,
      "Take pieces for missing that come less often",
      0)
      ->needs(vocabulary);
  verb.add_option(
          "--glossaries", flags->options.glossaries, "Regular expressions for what stays whole")
      ->type_name("REGEX");
  verb.add_option(
          "--separator", flags->options.separator, "Written behind pieces that do not end a word")
      ->type_name("TEXT")
      ->capture_default_str();
  add_integer(
      verb,
      "--merges",
      flags->options.merges,
      "Use so many lines of the codes, the first ones (default: all)",
      0)
      ->default_str("");
  CLI::Option* dropout = add_real(
      verb,
      "--dropout",
      flags->options.dropout,
      "Pass each merge over with this probability, 0 to 1 (BPE dropout)");
  add_integer(verb, "--seed", flags->seed, "Seed of dropout; numbers are those of subword-nmt", 0)
      ->needs(dropout);
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { apply_codes(*flags, program.out); }; });
}

}  // namespace

void add_bpe(Program& program) {
  CLI::App& verb = program.add_verb("bpe", "Learn and apply byte-pair encodings", kBpeExamples);
  require_verb(verb);
  add_learn(verb, program);
  add_apply(verb, program);
}

}  // namespace seqconv::internal::cli
