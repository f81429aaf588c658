#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/runtime_backends.h"
#include "search/candidates.h"
#include "sound_models.h"
#include "support/temporary_folder.h"

// The best words that are chosen without making all log-probabilities are those
// that are chosen out of them.
namespace seqconv::internal {
namespace {

using testing::number_of;

constexpr int64_t kWords = 300;

/// How the numbers of a model are.
enum class Numbers { kRandom, kEqual, kNearlyEqual, kOverflowing };
constexpr Numbers kAllNumbers[] = {
    Numbers::kRandom, Numbers::kEqual, Numbers::kNearlyEqual, Numbers::kOverflowing};

/// Rows of matrices come again and again, so that words are equally probable;
/// or a word of a tail is infinite, and the tail's probabilities are NaN.
void change(Numbers numbers, const ParameterShape& parameter, std::vector<float>& own) {
  if (parameter.shape.size() != 2 || numbers == Numbers::kRandom)
    return;
  if (numbers == Numbers::kOverflowing) {
    if (parameter.name.find("tail1_words") != std::string::npos)
      own.back() = std::numeric_limits<float>::max();
    return;
  }
  const auto again = static_cast<size_t>(7 * parameter.shape[1]);
  for (size_t i = again; i < own.size(); ++i) {
    own[i] = own[i % again];
    if (numbers == Numbers::kNearlyEqual)
      own[i] += 1e-7F * number_of(5, i);
  }
}

void expect_same(const std::vector<Candidate>& found, const std::vector<Candidate>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].token, wanted[i].token) << i;
    EXPECT_EQ(found[i].score, wanted[i].score) << i;
  }
}

/// How many neighbours have the same score.
size_t ties_of(const std::vector<Candidate>& candidates) {
  size_t ties = 0;
  for (size_t i = 1; i < candidates.size(); ++i)
    ties += candidates[i].score == candidates[i - 1].score ? 1 : 0;
  return ties;
}

/// Bans, forced and free rows.
std::vector<RowConstraint> made_constraints(size_t rows, uint64_t seed) {
  std::vector<RowConstraint> constraints(rows);
  for (size_t r = 0; r < rows; ++r) {
    const uint32_t word = random_word(seed, r);
    if (word % 5 == 0)
      constraints[r].forced = kEndId;
    for (uint32_t i = 0; i < word % 4; ++i)
      constraints[r].banned.push_back(static_cast<int32_t>(random_word(seed + r, i) % kWords));
  }
  return constraints;
}

class SoundCandidates : public ::testing::Test {
 protected:
  ModelToRun write(
      const ModelOptions& options, Task task, Numbers numbers, uint64_t seed = 0) const {
    return testing::write_sound_model(
        options,
        task,
        folder_.path() / "model",
        seed,
        {19, kWords},
        [&](const ParameterShape& parameter, std::vector<float>& own) {
          change(numbers, parameter, own);
        });
  }

 private:
  testing::TemporaryFolder folder_;
};

/// Steps of two decoders, one of which makes all probabilities.
size_t expect_same_steps(StepDecoder& some, StepDecoder& all) {
  const std::vector<int32_t> excluded = {5, 250, kWords - 1};
  std::vector<int32_t> parents = {0, 1, 2, 3, 4}, tokens(5, kEndId);
  size_t ties = 0;
  for (uint64_t step = 0; step < 6; ++step) {
    const auto rows = made_constraints(parents.size(), step);
    StepConstraints constraints = {
        .unknown_penalty = static_cast<double>(step % 3) - 1, .excluded = excluded, .rows = rows};
    constexpr int64_t kCounts[] = {1, 3, 10, 2 * kWords};
    const int64_t count = kCounts[step % std::size(kCounts)];
    const auto found = some.advance(parents, tokens, constraints, count);
    constraints.each_row = [](const StepRow&) {};
    const auto& wanted = all.advance(parents, tokens, constraints, count);
    parents = {4, 4, 0, 2, 1};
    for (size_t row = 0; row < wanted.size(); ++row) {
      expect_same(found[row], wanted[row]);
      ties += ties_of(wanted[row]);
      tokens[row] = wanted[row].empty() ? kEndId : wanted[row].back().token;
    }
  }
  return ties;
}

TEST_F(SoundCandidates, OfTranslationsAreThoseOfAllProbabilities) {
  const std::vector<std::vector<int32_t>> sources = {{4, 5}, {}, {6, 7, 8, 9, 4}, {10}, {18, 17}};
  std::vector<std::vector<int32_t>> lists(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    for (int32_t word = 0; word < kWords; ++word)
      if (word == kEndId || random_word(i, static_cast<uint64_t>(word)) % 3 < i)
        lists[i].push_back(word);
  size_t ties = 0;
  for (const auto& [name, compute] : EnumNames<ComputeType>::kNames)
    for (const Numbers numbers : kAllNumbers) {
      SCOPED_TRACE(concat(name, ", numbers ", static_cast<int>(numbers)));
      const auto backend = RuntimeBackends(compute).translation({write(
          testing::options_of(MixerKind::kLightConv, Task::kTranslation),
          Task::kTranslation,
          numbers)});
      ties += expect_same_steps(*backend->start(sources), *backend->start(sources));
      ties += expect_same_steps(
          *backend->start_within(sources, lists), *backend->start_within(sources, lists));
    }
  EXPECT_GT(ties, 1000u);  // or it would not be much of a test
}

std::vector<ModelOptions> language_options() {
  std::vector<ModelOptions> all;
  const auto add = [&](std::vector<int64_t> cutoffs, auto also) {
    ModelOptions& options =
        all.emplace_back(testing::options_of(MixerKind::kLightConv, Task::kLanguageModel));
    options.tie = Tying::kNone;
    options.adaptive.softmax_cutoffs = std::move(cutoffs);
    options.adaptive.softmax_factor = 1.5;
    also(options);
    options.validate("model", Task::kLanguageModel);
  };
  const auto tie = [](ModelOptions& options) {
    options.tie = Tying::kDecoder;
    options.adaptive.input_cutoffs = options.adaptive.softmax_cutoffs;
    options.adaptive.input_factor = 1.5;
  };
  const auto none = [](ModelOptions&) {};
  add({}, none);
  add({70, 170}, none);
  add({4, 5, 6}, none);
  add({128, 140, 299}, none);
  add({100, kWords}, none);
  add({70, 170}, tie);
  add({70, 170}, [&](ModelOptions& options) {
    tie(options);
    options.adaptive.tie_projections = true;
  });
  return all;
}

/// Reads on in two readers, one of which makes all log-probabilities.
size_t expect_same_choices(const LanguageBackend& backend, uint64_t seed) {
  const auto some = backend.start(), all = backend.start();
  size_t ties = 0;
  for (uint64_t step = 0; step < 12; ++step) {
    const auto word = static_cast<int32_t>(random_word(seed, step) % kWords);
    NextTokens& next = some->read({&word, 1});
    const auto whole = all->read({&word, 1}).log_probabilities();
    const RowConstraint constraint = made_constraints(1, 99 * seed + step)[0];
    const StepConstraints constraints = {.rows = {&constraint, 1}};
    for (const int64_t count : {int64_t{1}, int64_t{4}, 2 * kWords}) {
      std::vector<Candidate> found, wanted;
      next.best(constraint, count, found);
      select_candidates({whole}, constraints, /*row=*/0, count, wanted);
      expect_same(found, wanted);
      ties += ties_of(wanted);
    }
    const auto same = next.log_probabilities();  // after the best of them
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(same[i] == whole[i] || (std::isnan(same[i]) && std::isnan(whole[i])));
    std::vector<Candidate> found;
    next.best({}, 1, found);
    EXPECT_EQ(found[0].score, std::ranges::max(whole.subspan(2), {}, [](float x) {
                return std::isnan(x) ? -1e30F : x;
              }));
  }
  return ties;
}

TEST_F(SoundCandidates, OfLanguageModelsAreThoseOfAllProbabilities) {
  size_t ties = 0;
  for (const ModelOptions& options : language_options())
    for (const Numbers numbers : kAllNumbers)
      for (const ComputeType compute : {ComputeType::kModel, ComputeType::kInt8}) {
        if (numbers == Numbers::kOverflowing && compute == ComputeType::kInt8)
          continue;
        const ModelToRun model = write(options, Task::kLanguageModel, numbers);
        SCOPED_TRACE(concat(
            Json(options.adaptive.softmax_cutoffs).dump(),
            ", numbers ",
            static_cast<int>(numbers)));
        ties += expect_same_choices(*RuntimeBackends(compute).language(model), 3);
      }
  EXPECT_GT(ties, 1000u);
}

}  // namespace
}  // namespace seqconv::internal
