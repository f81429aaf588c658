// score MODEL < PAIRS: the natural log-probability of each line's second half,
// after a tab, as a translation of its first.
#include <seqconv/runtime.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace seqconv;

void score(const std::string& model) {
  const Scorer scorer(model);
  std::vector<ScoreRequest> pairs;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    pairs.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  for (const ScoreResult& result : scorer.score(pairs))
    if (result.ok())
      std::cout << result.log_probability << '\n';
    else
      std::cout << "(" << result.error << ")\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "score MODEL < PAIRS\n";
    return 2;
  }
  try {
    score(argv[1]);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
