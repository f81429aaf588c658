/// Memory and speed of a model in another program, one thread:
///
///   decode_bench --size tiny --save F
///   seqconv quantize --model F --output I
///   embedded_bench I [BEAM]
///
/// Opens the folder by libseqconv_runtime.so alone, translates 100 sentences of 24
/// words one by one, then the same together, each time to as many words.
#include <seqconv/runtime.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

namespace {

using namespace seqconv;

constexpr int kSentences = 100;
constexpr int kWords = 24;

/// Resident memory in megabytes, of 10^6 bytes.
double resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::stod(line.substr(6)) * 1024 / 1e6;
  return 0;
}

std::vector<TranslationRequest> make_requests(int64_t beam) {
  std::vector<TranslationRequest> requests(kSentences);
  for (int i = 0; i < kSentences; ++i) {
    for (int j = 0; j < kWords; ++j)
      requests[i].text += "w" + std::to_string(4 + (i * 37 + j * 101) % 5000) + " ";
    requests[i].search = {
        .beam = beam, .max_length_a = 0, .max_length_b = kWords, .min_length = kWords};
  }
  return requests;
}

template <class Work>
double words_per_second(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return kSentences * kWords / seconds.count();
}

void run(const std::string& folder, int64_t beam) {
  const double before = resident();
  const Translator translator(folder, {.threads = 1});
  std::printf("memory: %.1f MB at the start, %.1f MB opened", before, resident());
  const std::vector<TranslationRequest> requests = make_requests(beam);
  const double one_by_one = words_per_second([&] {
    for (const TranslationRequest& request : requests)
      translator.translate({request});
  });
  std::printf(", %.1f MB after %d sentences", resident(), kSentences);
  const double together = words_per_second([&] { translator.translate(requests); });
  std::printf(", %.1f MB after as many together\n", resident());
  std::printf("words per second: %.0f one by one, %.0f together\n", one_by_one, together);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: embedded_bench FOLDER [BEAM]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::stoll(argv[2]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embedded_bench: %s\n", error.what());
    return 1;
  }
}
