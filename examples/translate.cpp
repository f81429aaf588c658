// translate MODEL < LINES: a translation a line. A line that has none is said
// on standard error, leaves an empty line and makes the exit code 1.
#include <seqconv/runtime.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace seqconv;

int translate(const std::string& model) {
  const Translator translator(model);
  std::vector<TranslationRequest> requests;
  for (std::string line; std::getline(std::cin, line);)
    requests.push_back({.text = line});
  int failed = 0;
  size_t number = 0;
  for (const auto& result : translator.translate(requests)) {
    ++number;
    for (const std::string& note : result.notes)
      std::cerr << number << ": " << note << '\n';
    if (result.ok()) {
      std::cout << result.translations[0].text << '\n';
      continue;
    }
    std::cerr << number << ": " << result.error << '\n';
    std::cout << '\n';
    ++failed;
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "translate MODEL < LINES\n";
    return 2;
  }
  try {
    return translate(argv[1]);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
