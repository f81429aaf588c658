#include "decode_runners.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "search/search.h"

namespace seqconv::bench {
using namespace internal;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class BackendRunner : public DecodeRunner {
 public:
  BackendRunner(
      std::string name,
      std::shared_ptr<const TranslationBackend> backend,
      int64_t vocabulary,
      const DecodeCase& test,
      int64_t replicas)
      : name_(std::move(name)), backend_(std::move(backend)), test_(test), replicas_(replicas) {
    std::mt19937 random(1);
    for (int64_t i = 0; i < test.batch; ++i) {
      std::vector<int32_t>& source = sources_.emplace_back();
      for (int64_t t = 0; t < test.source_length; ++t)
        source.push_back(4 + static_cast<int32_t>(random() % (vocabulary - 4)));
      inputs_.push_back({test.source_length + 1, {}});
    }
    options_.beam = test.beam;
    options_.min_length = options_.max_length_b = test.length - 1;  // and </s>
  }

  std::string name() const override { return name_; }

  double tokens_per_second(double seconds) override {
    std::atomic<int64_t> batches = 0;
    const auto start = Clock::now();
    const auto work = [&] {
      do {
        const auto decoder = backend_->start(sources_);
        search(*decoder, inputs_, options_);
        ++batches;
      } while (seconds_since(start) < seconds);
    };
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < replicas_; ++i)
      others.emplace_back(work);
    work();
    others.clear();
    return static_cast<double>(batches * test_.batch * test_.length) / seconds_since(start);
  }

 private:
  std::string name_;
  std::shared_ptr<const TranslationBackend> backend_;
  DecodeCase test_;
  int64_t replicas_;
  std::vector<std::vector<int32_t>> sources_;
  std::vector<SearchInput> inputs_;
  DecodingOptions options_;
};

class GenerationRunner : public DecodeRunner {
 public:
  GenerationRunner(
      std::string name,
      std::shared_ptr<const LanguageBackend> backend,
      int64_t vocabulary,
      const SamplingOptions& sampling)
      : name_(std::move(name)),
        backend_(std::move(backend)),
        vocabulary_(vocabulary),
        sampler_(sampling) {}

  std::string name() const override { return name_; }

  double tokens_per_second(double seconds) override {
    const auto reader = backend_->start();
    std::mt19937 random(1);
    int64_t count = 0;
    const auto start = Clock::now();
    do {
      const int32_t id = 4 + static_cast<int32_t>(random() % (vocabulary_ - 4));
      sampler_.draw(reader->read({&id, 1}), {}, /*uniform=*/0.5);
      ++count;
    } while (seconds_since(start) < seconds);
    return static_cast<double>(count) / seconds_since(start);
  }

 private:
  std::string name_;
  std::shared_ptr<const LanguageBackend> backend_;
  int64_t vocabulary_;
  Sampler sampler_;
};

class RivalRunner : public DecodeRunner {
 public:
  RivalRunner(const std::string& program, const std::string& description, std::string name)
      : name_(std::move(name)), program_(program) {
    int to[2], from[2];
    // A rival that is started later must not keep this one's input open.
    SEQCONV_CHECK(
        ::pipe2(to, O_CLOEXEC) == 0 && ::pipe2(from, O_CLOEXEC) == 0, "cannot make a pipe");
    child_ = ::fork();
    SEQCONV_CHECK(child_ >= 0, "cannot start ", program);
    if (child_ == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::execlp(program.c_str(), program.c_str(), description.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
  }

  ~RivalRunner() override {
    ::fclose(to_);
    ::fclose(from_);
    ::waitpid(child_, nullptr, 0);
  }

  std::string name() const override { return name_; }

  double tokens_per_second(double seconds) override {
    std::fprintf(to_, "%g\n", seconds);
    std::fflush(to_);
    char line[256];
    SEQCONV_CHECK(
        std::fgets(line, sizeof line, from_) != nullptr,
        program_,
        " must write a line with its tokens a second, but ended");
    double rate = 0;
    SEQCONV_CHECK(
        std::sscanf(line, "%lf", &rate) == 1 && rate > 0,
        program_,
        " must write its tokens a second, but wrote ",
        line);
    return rate;
  }

 private:
  std::string name_;
  std::string program_;
  pid_t child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace

std::unique_ptr<DecodeRunner> backend_runner(
    std::string name,
    std::shared_ptr<const TranslationBackend> backend,
    int64_t vocabulary,
    const DecodeCase& test,
    int64_t replicas) {
  return std::make_unique<BackendRunner>(
      std::move(name), std::move(backend), vocabulary, test, replicas);
}

std::unique_ptr<DecodeRunner> generation_runner(
    std::string name,
    std::shared_ptr<const LanguageBackend> backend,
    int64_t vocabulary,
    const SamplingOptions& sampling) {
  return std::make_unique<GenerationRunner>(
      std::move(name), std::move(backend), vocabulary, sampling);
}

std::unique_ptr<DecodeRunner> rival_runner(
    const std::string& program, const std::string& description, std::string name) {
  return std::make_unique<RivalRunner>(program, description, std::move(name));
}

}  // namespace seqconv::bench
