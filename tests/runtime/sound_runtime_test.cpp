#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "base/safetensors.h"
#include "model/parameters.h"
#include "pipeline/stop_scope.h"
#include "pipeline/workers.h"
#include "runtime/history.h"
#include "runtime/runtime_backends.h"
#include "search/sampled_search.h"
#include "sound_models.h"
#include "support/temporary_folder.h"
#include "support/threads.h"

/// The runtime without LibTorch, so that the sanitizers see it: every mixer
/// with numbers at random, alone, in batches and by several threads.
namespace seqconv::internal {
namespace {

using runtime::Ancestry;
using runtime::kAllSteps;
using runtime::RowLog;
using testing::expect_same_bytes;
using testing::number_of;
using testing::options_of;
using testing::write_sound_model;

class SoundRuntime : public ::testing::TestWithParam<MixerKind> {
 protected:
  ModelToRun model(Task task) const {
    return write_sound_model(options_of(GetParam(), task), task, folder_.path() / "model");
  }

  static std::vector<std::vector<int32_t>> sources() {
    std::vector<std::vector<int32_t>> sources;
    for (const size_t length : {5, 1, 30, 0, 12}) {
      std::vector<int32_t>& source = sources.emplace_back();
      for (size_t i = 0; i < length; ++i)
        source.push_back(3 + static_cast<int32_t>(random_word(length, i) % 16));
    }
    return sources;
  }

 private:
  testing::TemporaryFolder folder_;
};

std::vector<std::vector<Hypothesis>> found(
    const TranslationBackend& backend, const std::vector<std::vector<int32_t>>& sources) {
  std::vector<SearchInput> inputs;
  for (const auto& source : sources)
    inputs.push_back({.source_length = std::ssize(source) + 1});
  DecodingOptions options;
  options.beam = options.n_best = 3;
  options.max_length_a = 1;
  options.max_length_b = 4;
  return search(*backend.start(sources), inputs, options);
}

TEST_P(SoundRuntime, GivesASentenceTheSameAloneAndByThreads) {
  const auto backend = RuntimeBackends().translation({model(Task::kTranslation)});
  const auto all = sources();
  const auto together = found(*backend, all);
  std::vector<std::vector<std::vector<Hypothesis>>> alone(all.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] { alone[i] = found(*backend, {all[i]}); });
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t n = 0; n < 3; ++n)
      expect_same_bytes(together[i][n], alone[i][0][n]);
}

TEST_P(SoundRuntime, ScoresWhatItFinds) {
  const auto backend = RuntimeBackends().translation({model(Task::kTranslation)});
  const auto all = sources();
  const auto hypotheses = found(*backend, all);
  std::vector<std::vector<int32_t>> targets;
  for (const auto& own : hypotheses)
    targets.emplace_back(own[0].tokens.begin(), own[0].tokens.end() - 1);
  const std::vector<double> scores = backend->score(all, targets);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_NEAR(scores[i], hypotheses[i][0].log_probability, 1e-4);
}

TEST_P(SoundRuntime, ReadsATextTheSameInAnyChunksAndAsAPiece) {
  const auto backend = RuntimeBackends().language(model(Task::kLanguageModel));
  std::vector<int32_t> ids;
  for (size_t i = 0; i < 40; ++i)
    ids.push_back(2 + static_cast<int32_t>(random_word(1, i) % 20));
  const std::vector<float> scores = backend->score({ids})[0];
  const auto reader = backend->start();
  for (size_t first = 0, length = 1; first + 1 < ids.size();
       first += length, length = 1 + (length * 3) % 8) {
    length = std::min(length, ids.size() - 1 - first);
    const auto next = reader->read(std::span(ids).subspan(first, length)).log_probabilities();
    const auto word = static_cast<size_t>(ids[first + length]);
    EXPECT_NEAR(next[word], scores[first + length - 1], 1e-4) << first;
  }
}

TEST_P(SoundRuntime, AsksBetweenLayersWhetherToStop) {
  const auto translation = RuntimeBackends().translation({model(Task::kTranslation)});
  const auto language = RuntimeBackends().language(model(Task::kLanguageModel));
  const auto all = sources();
  const std::vector<int32_t> ids = {3, 4, 5};
  int questions = 0;
  const StopQuestion at_the_second = [&] { return ++questions == 2; };
  const auto expect_stop = [&](const auto& work) {
    questions = 0;
    const StopScope scope(at_the_second);
    EXPECT_THROW(work(), Stopped);
    EXPECT_EQ(questions, 2);
  };
  expect_stop([&] { translation->start(all); });
  expect_stop([&] { translation->score(all, all); });
  expect_stop([&] { language->score({ids}); });
  const std::vector<int32_t> long_text(600, 3);
  expect_stop([&] { language->start()->read(long_text); });
  EXPECT_EQ(language->score({ids}).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryMixer,
    SoundRuntime,
    ::testing::ValuesIn(testing::all_block_kinds()),
    testing::block_kind_name);

/// Rows that carry all that they are, beside those of the history.
/// Products of this width have several parts: of 100,000 operations each.
ModelOptions options_of_large_products() {
  ModelOptions options = options_of(MixerKind::kDynamicConv, Task::kTranslation);
  options.dim = 64;
  options.ffn_dim = 1000;
  return options;
}

TEST(SharedProducts, GiveTheBytesOfOneThread) {
  const testing::TemporaryFolder folder;
  const ModelToRun model = write_sound_model(
      options_of_large_products(), Task::kTranslation, folder.path() / "model", 0, {19, 1500});
  const std::vector<std::vector<int32_t>> source = {{3, 9, 4, 4, 17, 12}};
  for (const ComputeType type :
       {ComputeType::kFloat32, ComputeType::kBfloat16, ComputeType::kInt8}) {
    const auto backend = RuntimeBackends(type).translation({model});
    const auto wanted = found(*backend, source);
    std::vector<std::vector<Hypothesis>> shared;
    share_work(1, 2, [&](size_t) {
      testing::loop_until_helped();
      shared = found(*backend, source);
    });
    for (size_t n = 0; n < 3; ++n)
      expect_same_bytes(wanted[0][n], shared[0][n]);
  }
}

TEST(Ancestry, FindsThePastOfRowsThatAreDroppedRepeatedAndReordered) {
  for (const int64_t reach : {int64_t{0}, int64_t{1}, int64_t{4}, kAllSteps})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      runtime::Workspace space;
      runtime::Workspace::Frame kept(space);
      Ancestry ancestry(reach, kept);
      RowLog log(2, reach, kept);
      std::vector<std::vector<float>> past(3);  // a row: what it has seen
      for (int64_t step = 0; step < 25; ++step) {
        const auto word = [&](uint64_t i) {
          return random_word(mix_words(seed, static_cast<uint64_t>(step)), i);
        };
        std::vector<int32_t> parents;
        const uint64_t rows = step == 0 ? 3 : 1 + word(0) % 6;
        for (uint64_t r = 0; r < rows; ++r)
          parents.push_back(static_cast<int32_t>(step == 0 ? r : word(1 + r) % past.size()));
        ancestry.advance(parents);
        std::vector<std::vector<float>> next;
        float* const own = log.add(step, static_cast<int64_t>(rows));
        for (uint64_t r = 0; r < rows; ++r) {
          next.push_back(past[static_cast<size_t>(parents[r])]);
          next.back().push_back(number_of(word(7), r));
          own[2 * r] = next.back().back();
        }
        past = std::move(next);
        const int64_t count = Ancestry::seen(step, reach);
        EXPECT_EQ(count, reach == kAllSteps ? step + 1 : std::min(step, reach) + 1);
        std::vector<const float*> where(static_cast<size_t>(count));
        for (uint64_t r = 0; r < rows; ++r) {
          ancestry.find(log, step, static_cast<int64_t>(r), count, where.data());
          for (int64_t i = 0; i < count; ++i)
            EXPECT_EQ(
                *where[static_cast<size_t>(i)],
                past[r][past[r].size() - static_cast<size_t>(count - i)]);
        }
      }
    }
}

}  // namespace
}  // namespace seqconv::internal
