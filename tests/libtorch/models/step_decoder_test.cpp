#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "resident_memory.h"
#include "test_models.h"

// Rows of a beam look at one memory of their sentence.
namespace seqconv::internal {
namespace {

using testing::Variant;

class StepDecoderTest : public ::testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(
    Blocks, StepDecoderTest, ::testing::ValuesIn(testing::all_variants()), testing::variant_name);

constexpr int kTargets = 3;  // of each sentence
constexpr int kSteps = 12;

/// Sentences of unlike lengths, each with several targets: all pairs, and the
/// sentences alone.
struct Pairs {
  Batch all;
  Batch sources;
};

Pairs random_pairs() {
  const std::vector<std::pair<int, int>> lengths = {
      {7, kSteps - 1}, {4, kSteps - 1}, {12, kSteps - 1}, {1, kSteps - 1}};
  std::vector<std::vector<int32_t>> sources, repeated, targets;
  std::mt19937_64 random(17);
  const auto sentence = [&](int length) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    for (int32_t& id : ids)
      id = 4 + static_cast<int32_t>(random() % 36);
    return ids;
  };
  for (const auto& [source, target] : lengths) {
    sources.push_back(sentence(source));
    for (int i = 0; i < kTargets; ++i) {
      repeated.push_back(sources.back());
      targets.push_back(sentence(target));
    }
  }
  return {make_batch(repeated, targets), make_batch(sources, {})};
}

/// Rows of a decoder, by the pair that each follows.
class FollowedPairs {
 public:
  /// For the rows of the next step: `pairs`, each of which has a row by now, or
  /// in step 0 a row of its sentence.
  void move_to(const std::vector<int32_t>& pairs, int step) {
    parents.clear();
    for (const int32_t pair : pairs) {
      const int32_t wanted = step == 1 ? pair / kTargets * kTargets : pair;
      const auto at = std::find(rows.begin(), rows.end(), wanted);
      parents.push_back(static_cast<int32_t>(at - rows.begin()));
    }
    rows = pairs;
  }

  std::vector<int32_t> rows;
  std::vector<int32_t> parents;
};

/// Which pairs have rows in a step, in any order, some of them twice: one row a
/// sentence, then unlike numbers; sentences leave in the end.
std::vector<int32_t> pairs_of_step(int step, std::mt19937_64& random) {
  std::vector<int32_t> pairs = {0, 3, 6, 9};
  if (step > 0)
    pairs = {0, 1, 2, 3, 6, 7, 9, 10, 11};
  if (step > 4)  // no row looks at the second sentence any more
    pairs = {2, 1, 6, 6, 7, 9, 10, 11, 11, 11};
  if (step > 7)
    pairs = {6, 7, 10};
  if (step > 9)
    pairs = {10, 10};
  if (step > 0)
    std::shuffle(pairs.begin(), pairs.end(), random);
  return pairs;
}

TEST_P(StepDecoderTest, RowsOfASentenceScoreAsEachAlone) {
  at::NoGradGuard no_grad;
  TranslationModel model(GetParam().options, 40, 40, 7);
  model->eval();
  const Pairs pairs = random_pairs();
  const at::Tensor wanted = model->target_log_probabilities(pairs.all);
  const auto decoder = make_step_decoder({model}, pairs.sources);
  std::mt19937_64 random(3);
  FollowedPairs followed{.rows = {0, 3, 6, 9}, .parents = {}};
  for (int step = 0; step < kSteps; ++step) {
    followed.move_to(pairs_of_step(step, random), step);
    std::vector<int32_t> tokens;
    std::vector<RowConstraint> constraints;
    for (const int32_t pair : followed.rows) {
      const auto at = static_cast<size_t>(pair * pairs.all.target_steps + step);
      tokens.push_back(static_cast<int32_t>(pairs.all.target_in[at]));
      constraints.push_back({.forced = static_cast<int32_t>(pairs.all.target_out[at])});
    }
    const auto& found = decoder->advance(
        followed.parents,
        tokens,
        {.rows = constraints},
        /*count=*/1);
    for (size_t row = 0; row < found.size(); ++row)
      EXPECT_NEAR(found[row].at(0).score, wanted[followed.rows[row]][step].item<float>(), 2e-5)
          << "row " << row << " of step " << step;
  }
}

TEST(StepDecoderMemory, OfTheSourceDoesNotGrowWithTheBeam) {
  constexpr int kSentences = 8, kWords = 4000, kBeam = 12;
  ModelOptions options = testing::small_options(MixerKind::kLightConv);
  options.dim = 64;
  TranslationModel model(options, 40, 40, 7);
  const Batch batch =
      testing::random_batch(std::vector<std::pair<int, int>>(kSentences, {kWords, 1}), 40, 3);
  const auto decoder = make_step_decoder({model}, batch);
  std::vector<int32_t> rows(kSentences);
  std::iota(rows.begin(), rows.end(), 0);
  const auto advance = [&] { decoder->advance(rows, std::vector<int32_t>(rows.size(), 2), {}, 1); };
  advance();
  for (int32_t& row : rows = std::vector<int32_t>(kSentences * kBeam))
    row = static_cast<int32_t>(&row - rows.data()) / kBeam;
  const int64_t before = testing::status_kb("VmRSS");
  EXPECT_TRUE(testing::reset_peak());
  advance();
  // Keys and values of a layer: 4 bytes x 8 x 4,001 x 64 x 2 = 16 MB; those of
  // both layers for 12 rows a sentence 390 MB.
  EXPECT_LT((testing::status_kb("VmHWM") - before) / 1024, 100);
}

}  // namespace
}  // namespace seqconv::internal
