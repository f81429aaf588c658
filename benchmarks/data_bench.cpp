/// Memory and time of the data layer on a large generated corpus:
///   data_bench [PAIRS]   (10,000,000 pairs: about 1.5 GB in a temporary
///   folder)
/// Prints the seconds of each stage and the resident memory after it, split
/// into anonymous pages (the program's own) and file pages (the mapped corpus,
/// which the system takes back when it needs them).
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "text/corpus/batcher.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;

/// Kilobytes behind a name in /proc/self/status.
int64_t status_kb(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    int64_t value = 0;
    if (key == name + ":" && status >> value)
      return value;
  }
  return 0;
}

/// Prints a line for each stage that has ended.
class Stages {
 public:
  explicit Stages(int64_t pairs) : pairs_(pairs) {
    std::printf(
        "%-34s %8s %12s %12s %10s %14s\n",
        "stage",
        "seconds",
        "anonymous MB",
        "file MB",
        "peak MB",
        "bytes per pair");
  }

  void end(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const int64_t anonymous = status_kb("RssAnon");
    first_ = first_ < 0 ? anonymous : first_;
    std::printf(
        "%-34s %8.2f %12.1f %12.1f %10.1f %14.2f\n",
        name,
        seconds,
        static_cast<double>(anonymous) / 1024,
        static_cast<double>(status_kb("RssFile")) / 1024,
        static_cast<double>(status_kb("VmHWM")) / 1024,
        static_cast<double>(anonymous - first_) * 1024 / static_cast<double>(pairs_));
    std::fflush(stdout);
    start_ = std::chrono::steady_clock::now();
  }

 private:
  int64_t pairs_;
  int64_t first_ = -1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Pairs of 1 to 31 ids, the target near the source in length.
void generate(const fs::path& stem, int64_t pairs) {
  TokenStoreWriter source(stem.string() + ".source.tokens");
  TokenStoreWriter target(stem.string() + ".target.tokens");
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < pairs; ++i) {
    const auto words = philox(1, static_cast<uint64_t>(i));
    ids.assign(1 + words[0] % 31, static_cast<int32_t>(words[1] % 32000));
    source.append(ids);
    ids.resize(1 + (ids.size() + words[2] % 4) % 31, 7);
    target.append(ids);
  }
  source.finish();
  target.finish();
}

/// In a process of its own, so that the peak below is the reader's.
void generate_apart(const fs::path& stem, int64_t pairs) {
  const pid_t child = ::fork();
  SEQCONV_CHECK(child >= 0, "cannot start a process");
  if (child == 0) {
    try {
      generate(stem, pairs);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "data_bench: %s\n", error.what());
      ::_exit(1);
    }
    std::printf("writer's peak: %.1f MB\n", static_cast<double>(status_kb("VmHWM")) / 1024);
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  SEQCONV_CHECK(status == 0, "the corpus could not be generated");
}

void run(const fs::path& folder, int64_t pairs) {
  Stages stages(pairs);
  generate_apart(folder / "corpus", pairs);
  stages.end("generate (another process)");
  PairCorpus corpus = open_pair_corpus(folder / "corpus");
  stages.end("open");
  const Batcher batcher(corpus, {.max_tokens = 4096}, /*seed=*/1);
  stages.end("sort and cut into batches");
  const auto order = batcher.order(1);
  stages.end("order of an epoch");
  int64_t tokens = 0;
  const size_t walked = order.size() / 20 + 1;
  for (size_t i = 0; i < walked; ++i)
    tokens += batcher.batch(order[i]).target_tokens;
  stages.end("build a twentieth of the batches");
  std::printf(
      "%lld batches; %zu walked, %lld target tokens\n",
      static_cast<long long>(batcher.size()),
      walked,
      static_cast<long long>(tokens));
}

}  // namespace
}  // namespace seqconv::internal

int main(int count, char** arguments) {
  const int64_t pairs = count > 1 ? std::atoll(arguments[1]) : 10'000'000;
  std::string folder = std::filesystem::temp_directory_path() / "seqconv-data-bench-XXXXXX";
  int code = 0;
  if (pairs < 1 || ::mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "usage: data_bench [PAIRS], with room in %s\n", folder.c_str());
    return 2;
  }
  try {
    seqconv::internal::run(folder, pairs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "data_bench: %s\n", error.what());
    code = 1;
  }
  std::filesystem::remove_all(folder);
  return code;
}
