// align MODEL < LINES: for each line its translation, and below, one a line, the
// pieces of the line and of the translation that belong together.
#include <seqconv/runtime.h>

#include <iostream>
#include <string>

namespace {

using namespace seqconv;

std::string piece(const std::string& text, const ByteRange& range) {
  return text.substr(
      static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
}

void print(const std::string& line, const TranslationResult& result) {
  const Translation& best = result.translations[0];
  std::cout << best.text << '\n';
  for (const AlignedTokens& pair : best.alignment)
    std::cout << '\t' << piece(line, result.source_ranges[static_cast<size_t>(pair.source)]) << '\t'
              << piece(best.text, best.token_ranges[static_cast<size_t>(pair.target)]) << '\n';
}

int align(const std::string& model) {
  const Translator translator(model);
  for (std::string line; std::getline(std::cin, line);) {
    const TranslationRequest request = {.text = line, .alignments = Alignments::kPairs};
    const TranslationResult result = translator.translate(std::vector{request})[0];
    if (!result.ok()) {
      std::cerr << result.error << '\n';
      return 1;
    }
    print(line, result);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "align MODEL < LINES\n";
    return 2;
  }
  try {
    return align(argv[1]);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
