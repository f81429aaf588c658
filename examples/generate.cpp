// generate MODEL PROMPT SEED: goes on with the prompt, to the end of its line.
#include <seqconv/runtime.h>

#include <iostream>
#include <string>
#include <string_view>

namespace {

using namespace seqconv;

int generate(const std::string& model, const GenerationRequest& request) {
  const Generator generator(model);
  std::cout << request.prompt;
  const auto result = generator.generate(request, [](std::string_view text) {
    const size_t end = text.find('\n');
    std::cout << text.substr(0, end) << std::flush;
    return end == std::string_view::npos;  // whether to go on
  });
  std::cout << '\n';
  if (!result.ok())
    std::cerr << result.error << '\n';
  return result.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "generate MODEL PROMPT SEED\n";
    return 2;
  }
  try {
    const uint64_t seed = std::stoull(argv[3]);
    return generate(argv[1], {.prompt = argv[2], .length = 80, .sampling = {.seed = seed}});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
