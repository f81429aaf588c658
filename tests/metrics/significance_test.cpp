#include "metrics/significance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "metrics/numpy_random.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;

/// The mean of one number for each sentence.
ScoreOfSums mean_score() {
  return {.exact = [](std::span<const double> sums) { return sums[0] / sums[1]; }};
}

SentenceStatistics table(const std::vector<double>& scores) {
  SentenceStatistics statistics;
  for (double score : scores)
    statistics.add(std::vector<double>{score, 1});
  return statistics;
}

std::vector<double> noise(size_t count, double mean, uint64_t seed) {
  metrics::NumpyRandom random(seed);
  std::vector<double> values;
  while (values.size() < count)
    values.push_back(mean + random.below(1000) / 100.0 - 5);
  return values;
}

TEST(NumpyRandom, DrawsWhatNumpyDoes) {
  // np.random.default_rng(12345).integers(2, size=20, dtype=bool)
  metrics::NumpyRandom bits(12345);
  std::vector<int> drawn;
  for (int i = 0; i < 20; ++i)
    drawn.push_back(bits.bit());
  EXPECT_THAT(drawn, ElementsAre(1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1));
  // np.random.default_rng(2**40 + 5).choice(7, size=8)
  metrics::NumpyRandom numbers((uint64_t{1} << 40) + 5);
  std::vector<uint32_t> found;
  for (int i = 0; i < 8; ++i)
    found.push_back(numbers.below(7));
  EXPECT_THAT(found, ElementsAre(0, 0, 3, 2, 6, 4, 6, 1));
  // np.random.default_rng(1).integers(3 << 30, size=1000).sum(): many numbers
  // are drawn again.
  metrics::NumpyRandom large(1);
  uint64_t sum = 0;
  for (int i = 0; i < 1000; ++i)
    sum += large.below(3u << 30);
  EXPECT_EQ(sum, 1604251179651u);
}

TEST(Significance, TheIntervalOfAMeanIsThatOfTheory) {
  const auto values = noise(400, 30, 7);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 400;
  double square = 0;
  for (double value : values)
    square += (value - mean) * (value - mean);
  const double wanted = 1.96 * std::sqrt(square / 400 / 400);
  const auto interval = bootstrap_interval(table(values), mean_score(), {.samples = 4000});
  EXPECT_NEAR(interval.mean, mean, 0.02);
  EXPECT_NEAR(interval.half_width, wanted, 0.05 * wanted);
}

TEST(Significance, MeansOfSinglePrecisionAreRoundedAsNumpyDoes) {
  // np.full(n, np.float32(62.224014)).mean()
  ScoreOfSums score = mean_score();
  score.single = [](std::span<const float> sums) { return SampleScore{sums[0] / sums[1], true}; };
  const auto system = table({62.224014f});
  const auto mean = [&](int64_t samples) {
    const PairedTest test{.kind = PairedTestKind::kBootstrap, .resampling = {.samples = samples}};
    return compare_systems({system, system}, score, test)[1].interval->mean;
  };
  EXPECT_EQ(mean(5), 62.2240104675293);
  EXPECT_EQ(mean(100), 62.2240104675293);
  EXPECT_EQ(mean(128), 62.224002838134766);
  EXPECT_EQ(mean(200), 62.224002838134766);
}

TEST(Significance, EqualSystemsDifferByChanceAlone) {
  const auto system = table(noise(50, 20, 1));
  for (PairedTestKind kind : {PairedTestKind::kBootstrap, PairedTestKind::kRandomisation}) {
    const auto results = compare_systems(
        {system, system}, mean_score(), {.kind = kind, .resampling = {.samples = 200}});
    EXPECT_EQ(results[0].p_value, std::nullopt);
    EXPECT_EQ(results[0].score, results[1].score);
    EXPECT_EQ(*results[1].p_value, 1);
  }
}

TEST(Significance, EqualScoresOfUnequalSystemsAreTestedAsEver) {
  // Two sentences changed places: nothing is larger than a distance of nothing,
  // but most of what is drawn is.
  const auto first = table({1, 2, 3, 4, 5, 6, 7, 8});
  const auto other = table({2, 1, 3, 4, 5, 6, 7, 8});
  const auto results =
      compare_systems({first, other}, mean_score(), {.resampling = {.samples = 20000}});
  EXPECT_EQ(results[0].score, results[1].score);
  EXPECT_NEAR(*results[1].p_value, 0.5, 0.02);
}

TEST(Significance, TellsFarSystemsFromNearOnes) {
  const auto baseline = noise(200, 20, 1);
  const auto near = noise(200, 20.05, 2);
  const auto far = noise(200, 23, 3);
  for (PairedTestKind kind : {PairedTestKind::kBootstrap, PairedTestKind::kRandomisation}) {
    const auto results = compare_systems(
        {table(baseline), table(near), table(far)},
        mean_score(),
        {.kind = kind, .resampling = {.samples = 1000}});
    EXPECT_GT(*results[1].p_value, 0.1);
    EXPECT_LT(*results[2].p_value, 0.01);
    EXPECT_EQ(results[2].interval.has_value(), kind == PairedTestKind::kBootstrap);
  }
}

TEST(Significance, RandomisationFindsTheShareOfAllExchanges) {
  // Ten sentences with distances 1 to 10: of 1,024 exchanges those whose
  // signed sum is above the observed one, of both signs.
  const std::vector<double> none(10, 0);
  const std::vector<double> some = {1, -2, 3, 4, 5, -6, 7, 8, 9, 10};
  const double observed = std::accumulate(some.begin(), some.end(), 0.0);
  int larger = 0;
  for (int signs = 0; signs < 1024; ++signs) {
    double sum = 0;
    for (size_t i = 0; i < 10; ++i)
      sum += (signs >> i & 1) != 0 ? some[i] : -some[i];
    larger += std::abs(sum) > observed;
  }
  const auto results =
      compare_systems({table(none), table(some)}, mean_score(), {.resampling = {.samples = 20000}});
  EXPECT_NEAR(*results[1].p_value, larger / 1024.0, 0.005);
}

TEST(Significance, RefusesTablesThatDoNotFit) {
  const auto compare = [](const std::vector<SentenceStatistics>& systems) {
    return error_of([&] { compare_systems(systems, mean_score()); });
  };
  EXPECT_EQ(compare({}), "a test needs systems, but got 0");
  EXPECT_EQ(compare({table({1}), {}}), "system 2 needs sentences to draw from, but has 0");
  EXPECT_EQ(
      compare({table({1, 2}), table({1})}),
      "all systems must have the 2 sentences of the first, with 2 numbers each, but system 2 has 1 "
      "with 2");
  EXPECT_EQ(
      error_of([] {
        SentenceStatistics statistics;
        statistics.add(std::vector<double>{1, 2});
        statistics.add(std::vector<double>{1});
      }),
      "every sentence must have 2 numbers like the first, but got 1");
  EXPECT_EQ(
      error_of<UsageError>([] { bootstrap_interval(table({1}), mean_score(), {.samples = 1}); }),
      "resampling.samples must be at least 2, but got 1");
  EXPECT_EQ(
      error_of<UsageError>([] { bootstrap_interval(table({1}), mean_score(), {.seed = -1}); }),
      "resampling.seed must be at least 0, but got -1");
}

TEST(Significance, SignaturesSayWhatWasDrawn) {
  const std::string signature = "nrefs:1|case:mixed|version:x";
  EXPECT_EQ(
      signature_with(signature, Resampling{}), "nrefs:1|bs:1000|seed:12345|case:mixed|version:x");
  EXPECT_EQ(
      signature_with(signature, PairedTest{}), "nrefs:1|ar:10000|seed:12345|case:mixed|version:x");
  EXPECT_EQ(
      signature_with(
          signature,
          PairedTest{.resampling = {.samples = 500, .seed = 1}, .interval_samples = 200}),
      "nrefs:1|bs:200|ar:500|seed:1|case:mixed|version:x");
}

}  // namespace
}  // namespace seqconv::internal
