#include <iostream>

#include "base/characters.h"
#include "base/error.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "text/line_reader.h"
#include "text/moses.h"
#include "text/packed_text.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kTokenizeExamples =
    "Reads standard input line by line; the tokens are those of the "
    "sacremoses\n"
    "package. Models that were trained with text.tokenizer = 'moses' do this\n"
    "themselves and want raw text.\n"
    "\n"
    "Examples:\n"
    "  seqconv tokenize --language de < test.de > test.tok.de\n"
    "  seqconv tokenize --language en --lowercase < test.en > test.tok.en\n"
    "  seqconv tokenize --language en --undo < test.tok.en > test.en";

struct TokenizeFlags {
  std::string language;
  MosesOptions options;
  bool lowercase = false;
  bool undo = false;
};

void check(const TokenizeFlags& flags) {
  check_language(flags.language, "--language");
  if (!flags.undo)
    return;
  const char* const useless = flags.options.escape ? "--escape"
      : flags.options.split_dashes                 ? "--split-dashes"
      : flags.lowercase                            ? "--lowercase"
                                                   : nullptr;
  if (useless)
    fail_usage(useless, " has no effect with --undo, which takes tokens of every kind");
}

template <class Change>
void change_lines(const Change& change, std::ostream& out) {
  PackedText in(std::cin, "standard input");
  LineReader reader(in, "standard input", BadBytes::kReject);
  for (std::string line; reader.next(line);)
    out << change(line) << '\n';
}

void run_tokenize(const TokenizeFlags& flags, std::ostream& out) {
  check(flags);
  if (flags.undo) {
    const MosesDetokenizer detokenizer(flags.language);
    change_lines([&](const std::string& line) { return detokenizer.detokenize(line); }, out);
    return;
  }
  const MosesTokenizer tokenizer(flags.language, flags.options);
  change_lines(
      [&](const std::string& line) {
        const std::string tokens = tokenizer.tokenize(line);
        return flags.lowercase ? to_lower(tokens) : tokens;
      },
      out);
}

}  // namespace

void add_tokenize(Program& program) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App& verb = program.add_verb(
      "tokenize", "Split text into Moses tokens, or put them together again", kTokenizeExamples);
  verb.add_option("-l,--language", flags->language, "Such as de, en or fr")
      ->type_name("CODE")
      ->required();
  verb.add_flag("--escape", flags->options.escape, "Write & | < > ' \" [ ] as &amp; and so on");
  verb.add_flag("--split-dashes", flags->options.split_dashes, "Write a-b as a @-@ b");
  verb.add_flag("--lowercase", flags->lowercase, "Lower-case the tokens");
  verb.add_flag("--undo", flags->undo, "Tokens to text");
  verb.callback([&program, flags] {
    program.run = [&program, flags] { run_tokenize(*flags, program.out); };
  });
}

}  // namespace seqconv::internal::cli
