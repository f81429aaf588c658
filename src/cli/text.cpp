#include "base/one_line.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "text/bpe.h"
#include "text/corpus/fairseq_data.h"
#include "text/vocabulary.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kTextExamples =
    "Writes a sentence a line: its symbols, with blanks between them; <unk> "
    "for\n"
    "what the dictionary did not know. FILE is one of the two files, .bin or\n"
    ".idx; the other one must be beside it.\n"
    "\n"
    "Examples:\n"
    "  seqconv text --dictionary dict.en.txt --remove-bpe test.de-en.en.bin "
    "\\\n"
    "    > reference.txt\n"
    "  seqconv translate --model a --input test.de-en.de.bin |\n"
    "    seqconv evaluate bleu --reference reference.txt";

struct Text {
  std::string dictionary;
  std::string file;
  bool remove_bpe = false;
};

void write_text(const Text& flags, std::ostream& out) {
  const Vocabulary vocabulary = Vocabulary::load(flags.dictionary);
  const auto sentences = open_fairseq_data(flags.file, vocabulary.size());
  std::string line;
  for (int64_t i = 0; i < sentences->size(); ++i) {
    line.clear();
    for (const int32_t id : sentences->tokens(i)) {
      if (!line.empty())
        line += ' ';
      line += vocabulary.symbol(id);
    }
    out << one_line(flags.remove_bpe ? join_bpe(line) : line) << '\n';
  }
}

}  // namespace

void add_text(Program& program) {
  auto flags = std::make_shared<Text>();
  CLI::App& verb =
      program.add_verb("text", "Write fairseq's binarised data as text", kTextExamples);
  verb.add_option("--dictionary", flags->dictionary, "The dict.txt that the data were made with")
      ->type_name("FILE")
      ->required();
  verb.add_flag("--remove-bpe", flags->remove_bpe, "Join pieces of words that '@@' marks");
  verb.add_option("FILE", flags->file, "Binarised data: .bin or .idx")->required();
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { write_text(*flags, program.out); }; });
}

}  // namespace seqconv::internal::cli
