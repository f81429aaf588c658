#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <mutex>
#include <numeric>
#include <string>

#include "base/random.h"
#include "pipeline/workers.h"
#include "runtime/runtime_backends.h"
#include "search/sampled_search.h"
#include "sound_models.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

// Memory of opening a model, and of running one for long. Not in the
// tests with sanitizers, which keep what was freed.
namespace seqconv::internal {
namespace {

using testing::options_of;
using testing::write_sound_model;

constexpr double kMegabyte = 1e6;

/// A line of /proc/self/status in bytes: memory in use now, or at most.
double memory(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;)
    if (double kilobytes = 0; name == line && status >> kilobytes)
      return 1024 * kilobytes;
  ADD_FAILURE() << "no " << line;
  return 0;
}

/// What was in use at most is forgotten.
void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

/// What the heap has of the system, free blocks among it.
double heap() {
  const struct mallinfo2 all = ::mallinfo2();
  return static_cast<double>(all.arena + all.hblkhd);
}

/// Some 40 MB of float32, in matrices of 2 MB at most.
ModelOptions large_options() {
  ModelOptions options = options_of(MixerKind::kDynamicConv, Task::kTranslation);
  options.dim = 256;
  options.ffn_dim = 1024;
  options.encoder.layers = options.decoder.layers = 5;
  options.encoder.kernel_sizes = options.decoder.kernel_sizes = {3};
  return options;
}

TEST(RuntimeMemory, OpeningAModelTakesThePackedWeightsAlone) {
  const testing::TemporaryFolder folder;
  const ModelToRun model = write_sound_model(
      large_options(), Task::kTranslation, folder.path() / "model", 0, {2000, 2000});
  const auto bytes = static_cast<double>(std::filesystem::file_size(model.parameters));
  ASSERT_GT(bytes, 30 * kMegabyte);
  for (const auto& [type, part] :
       {std::pair(ComputeType::kFloat32, 1.0),
        std::pair(ComputeType::kBfloat16, 0.5),
        std::pair(ComputeType::kInt8, 0.25)}) {
    forget_peak();
    const double before = memory("VmRSS:");
    const auto backend = RuntimeBackends(type).translation({model});
    EXPECT_LT(memory("VmHWM:") - before, 1.3 * part * bytes + 6 * kMegabyte) << enum_name(type);
  }
}

TEST(RuntimeMemory, DrawsHaveTheLogitsOfAFewRowsAtATime) {
  constexpr int32_t kWords = 20'000;
  const testing::TemporaryFolder folder;
  const auto backend = RuntimeBackends(ComputeType::kFloat32, /*logits_bytes=*/1'000'000)
                           .translation({write_sound_model(
                               options_of(MixerKind::kDynamicConv, Task::kTranslation),
                               Task::kTranslation,
                               folder.path() / "model",
                               0,
                               {kWords, kWords})});
  const std::vector<std::vector<int32_t>> sources(64, {4, 5, 6});
  std::vector<std::vector<int32_t>> words(sources.size(), {2});
  for (auto& own : words)
    for (int32_t word = 4; word < kWords; word += 2)
      own.push_back(word);
  DecodingOptions options;
  options.n_best = 10;
  options.max_length_a = 0;
  options.max_length_b = 2;
  const std::vector<SampledInput> draws(sources.size(), {{4, {}}, 1});
  forget_peak();
  const double before = memory("VmRSS:");
  sampled_search(*backend->start(sources), draws, options, {});
  sampled_search(*backend->start_within(sources, words), draws, options, {});
  // All rows' logits are 51 MB.
  EXPECT_LT(memory("VmHWM:") - before, 15 * kMegabyte);
}

TEST(RuntimeMemory, ASourceIsReadOnceForAllTranslations) {
  const testing::TemporaryFolder folder;
  const auto backend = RuntimeBackends().translation({write_sound_model(
      large_options(), Task::kTranslation, folder.path() / "model", 0, {2'000, 2'000})});
  const std::vector<int32_t> source(1'000, 7);
  const std::vector<std::vector<int32_t>> targets(64, {4, 5, 6});
  forget_peak();
  const double before = memory("VmRSS:");
  EXPECT_EQ(backend->source_shares(source, targets).size(), targets.size());
  // Keys and values of one source are 10 MB, of 64 sources 640 MB.
  EXPECT_LT(memory("VmHWM:") - before, 40 * kMegabyte);
}

/// Everything that a backend is asked for, batch after batch in two threads,
/// while small results live on. Every batch has a few more sentences than the
/// one before, as those of sorted lines have: large blocks on the heap, with
/// results between them, would leave none that has room for the next.
class RuntimeHeap : public ::testing::TestWithParam<MixerKind> {
 protected:
  static constexpr size_t kBatches = 4;
  static constexpr size_t kThreads = 2;
  static constexpr int64_t kBeam = 4;
  static constexpr VocabularySizes kVocabulary{2'000, 2'000};

  ModelToRun model(Task task) const {
    return write_sound_model(
        options_of(GetParam(), task), task, folder_.path() / enum_name(task), 0, kVocabulary);
  }

  using Ids = std::vector<std::vector<int32_t>>;

  static size_t size_of(size_t batch) { return 16 + 3 * (batch % 32); }

  static Ids sentences(uint64_t number) {
    Ids all(size_of(number));
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t t = 0; t < 3 + (i + number) % 9; ++t)
        all[i].push_back(static_cast<int32_t>(3 + random_word(mix_words(number, i), t) % 1'900));
    return all;
  }

  /// Keeps what is found.
  void add(std::vector<std::vector<Hypothesis>> found) {
    const std::lock_guard lock(mutex_);
    for (std::vector<Hypothesis>& own : found)
      for (const Hypothesis& hypothesis : own)
        results_.push_back(hypothesis);
  }

  void translate(const TranslationBackend& backend, uint64_t number) {
    const Ids sources = sentences(number);
    DecodingOptions options;
    options.max_length_a = 0;
    options.max_length_b = static_cast<int64_t>(2 + number % 3);
    options.beam = kBeam;
    std::vector<SearchInput> inputs;
    std::vector<SampledInput> draws;
    Ids words;
    for (const auto& source : sources) {
      inputs.push_back({.source_length = std::ssize(source) + 1});
      draws.push_back({inputs.back(), number});
      words.emplace_back(300 + number % 50);
      std::iota(words.back().begin(), words.back().end(), 2);
    }
    add(search(*backend.start(sources), inputs, options));
    add(search(*backend.start_within(sources, words), inputs, options));
    add(sampled_search(*backend.start(sources), draws, options, {}));
    backend.score(sources, sources);
  }

  static void read(const LanguageBackend& backend, uint64_t number) {
    const auto reader = backend.start();
    const Ids ids = sentences(number);
    for (size_t i = 0; i < ids.size() / 4; ++i)
      reader->read(ids[i]).log_probabilities();
    backend.score({ids.begin(), ids.end()});
  }

  testing::TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<Hypothesis> results_;
};

TEST_P(RuntimeHeap, GrowsByWhatIsReturnedAlone) {
  const auto translation = RuntimeBackends().translation({model(Task::kTranslation)});
  const auto language = RuntimeBackends().language(model(Task::kLanguageModel));
  const int rounds = testing::rounds(24);
  double early = 0;
  for (int round = 0; round < rounds; ++round) {
    share_work(kBatches, kThreads, [&](size_t batch) {
      const size_t number = static_cast<size_t>(round) * kBatches + batch;
      translate(*translation, number);
      read(*language, number);
    });
    if (round == 0)
      early = heap();
  }
  // The logits of the largest batch have 3.5 MB.
  const auto results = static_cast<double>(results_.size());
  EXPECT_LT(heap() - early, results * (sizeof(Hypothesis) + 300) + 1 * kMegabyte);
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryMixer,
    RuntimeHeap,
    ::testing::ValuesIn(testing::all_block_kinds()),
    testing::block_kind_name);

}  // namespace
}  // namespace seqconv::internal
