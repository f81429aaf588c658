// translate_async MODEL MILLISECONDS < LINES: translates each line as it comes,
// and gives up those that are not done so long after the last.
#include <seqconv/runtime.h>

#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace seqconv;

void translate(const std::string& model, std::chrono::milliseconds patience) {
  const Translator translator(model, {.threads = 2});
  const CancelToken cancel;
  std::vector<std::future<TranslationResult>> futures;
  for (std::string line; std::getline(std::cin, line);)
    futures.push_back(translator.translate_async({.text = line}, cancel));

  const auto end = std::chrono::steady_clock::now() + patience;
  for (auto& future : futures) {
    if (future.wait_until(end) == std::future_status::timeout)
      cancel.cancel();
    const TranslationResult result = future.get();
    if (result.status == Status::kCancelled)
      std::cout << "(given up)\n";
    else if (result.ok())
      std::cout << result.translations[0].text << '\n';
    else
      std::cout << "(" << result.error << ")\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "translate_async MODEL MILLISECONDS < LINES\n";
    return 2;
  }
  try {
    translate(argv[1], std::chrono::milliseconds(std::stoll(argv[2])));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
