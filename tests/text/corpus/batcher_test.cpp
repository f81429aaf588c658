#include "text/corpus/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/random.h"
#include "support/errors.h"
#include "text/corpus/memory_source.h"

namespace seqconv::internal {
namespace {

using testing::corpus_of_lengths;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using Lengths = std::vector<std::pair<int, int>>;

Lengths random_lengths(size_t count, int longest, unsigned seed) {
  std::mt19937 random(seed);
  Lengths lengths(count);
  for (auto& [source, target] : lengths) {
    source = 1 + static_cast<int>(random() % static_cast<unsigned>(longest));
    target = 1 + static_cast<int>(random() % static_cast<unsigned>(longest));
  }
  return lengths;
}

std::vector<int64_t> sizes(const Batcher& batcher) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < batcher.size(); ++i)
    rows.push_back(batcher.batch(i).rows);
  return rows;
}

/// The rule once more, in another shape: looks ahead from the start of each
/// batch for how many pairs fit together, then cuts.
std::vector<int64_t> sizes_by_look_ahead(
    const std::vector<int64_t>& lengths, const BatchingOptions& options) {
  std::vector<int64_t> rows;
  for (size_t start = 0; start < lengths.size();) {
    int64_t fitting = 0, longest = 0;
    for (size_t i = start; i < lengths.size(); ++i) {
      longest = std::max(longest, lengths[i]);
      const bool too_many = options.max_sentences > 0 && fitting == options.max_sentences;
      if (fitting > 0 && (too_many || (fitting + 1) * longest > options.max_tokens))
        break;
      ++fitting;
    }
    const bool last = start + static_cast<size_t>(fitting) == lengths.size();
    const int64_t whole = fitting / options.multiple * options.multiple;
    rows.push_back(last || whole == 0 ? fitting : whole);
    start += static_cast<size_t>(rows.back());
  }
  return rows;
}

TEST(Batcher, PutsEveryPairIntoExactlyOneBatch) {
  const auto lengths = random_lengths(1000, 30, 1);
  const Batcher batcher(corpus_of_lengths(lengths), {.max_tokens = 200}, 1);
  std::set<int64_t> seen;
  int64_t tokens = 0;
  for (int64_t i = 0; i < batcher.size(); ++i) {
    const Batch batch = batcher.batch(i);
    ASSERT_EQ(static_cast<int64_t>(batch.pairs.size()), batch.rows);
    EXPECT_LE(batch.rows * std::max(batch.source_steps, batch.target_steps), 200);
    EXPECT_EQ(batcher.target_tokens(i), batch.target_tokens);
    tokens += batch.target_tokens;
    for (int64_t b = 0; b < batch.rows; ++b) {
      const auto row = static_cast<size_t>(b);
      const int64_t pair = batch.pairs[row];
      EXPECT_TRUE(seen.insert(pair).second) << pair << " comes twice";
      const auto& [source, target] = lengths[static_cast<size_t>(pair)];
      EXPECT_EQ(batch.source_lengths[row], source + 1);
      EXPECT_EQ(batch.target_lengths[row], target + 1);
      EXPECT_EQ(batch.source[row * static_cast<size_t>(batch.source_steps)], pair + 4);
      EXPECT_EQ(batch.target_out[row * static_cast<size_t>(batch.target_steps)], pair + 4);
    }
  }
  EXPECT_EQ(seen.size(), lengths.size());
  int64_t wanted = 0;
  for (const auto& [source, target] : lengths)
    wanted += target + 1;
  EXPECT_EQ(tokens, wanted);
}

TEST(Batcher, SortsBySourceThenTargetLength) {
  const auto lengths = random_lengths(500, 12, 2);
  const Batcher batcher(corpus_of_lengths(lengths), {.max_tokens = 90}, 3);
  Lengths walked;
  for (int64_t i = 0; i < batcher.size(); ++i)
    for (const int64_t pair : batcher.batch(i).pairs)
      walked.push_back(lengths[static_cast<size_t>(pair)]);
  EXPECT_TRUE(std::is_sorted(walked.begin(), walked.end()));
}

TEST(Batcher, SortsLengthsBeyondSixteenBitsAndEmptyOnes) {
  const Lengths lengths = {{70'000, 1}, {0, 5}, {131'072, 0}, {65'536, 2}};
  const Batcher batcher(corpus_of_lengths(lengths), {.max_tokens = 1}, 3);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < batcher.size(); ++i)
    order.push_back(batcher.batch(i).pairs.at(0));
  EXPECT_THAT(order, ElementsAre(1, 3, 0, 2));
}

TEST(Batcher, KeepsThePermutationAmongPairsOfEqualLength) {
  const size_t count = 40;
  const Batcher batcher(corpus_of_lengths(Lengths(count, {3, 3})), {.max_tokens = 1000}, 9);
  ASSERT_EQ(batcher.size(), 1);
  std::vector<int64_t> drawn(count);
  for (size_t i = 0; i < count; ++i)
    drawn[i] = static_cast<int64_t>(i);
  shuffle(drawn, mix_words(9, 0));
  EXPECT_EQ(batcher.batch(0).pairs, drawn);
}

TEST(Batcher, CutsFullBatchesAtTheMultiple) {
  // 100 / 5 = 20 rows fit, 16 are kept; the rest goes on.
  const Batcher batcher(corpus_of_lengths(Lengths(50, {4, 2})), {.max_tokens = 100}, 1);
  EXPECT_THAT(sizes(batcher), ElementsAre(16, 16, 18));
}

TEST(Batcher, KeepsBatchesSmallerThanTheMultipleWhole) {
  const Batcher batcher(corpus_of_lengths(Lengths(13, {19, 2})), {.max_tokens = 100}, 1);
  EXPECT_THAT(sizes(batcher), ElementsAre(5, 5, 3));
}

TEST(Batcher, NeverLetsALeftoverOverflowTheNextBatch) {
  // Nine short pairs leave one over; with the long one it would need 2 x 60.
  Lengths lengths(9, {5, 5});
  lengths.push_back({59, 59});
  const Batcher batcher(corpus_of_lengths(lengths), {.max_tokens = 60}, 1);
  EXPECT_THAT(sizes(batcher), ElementsAre(8, 1, 1));
}

TEST(Batcher, LimitsSentences) {
  const auto corpus = corpus_of_lengths(Lengths(30, {1, 1}));
  const auto rows = [&](int64_t most, int64_t multiple) {
    return sizes(
        Batcher(corpus, {.max_tokens = 1000, .max_sentences = most, .multiple = multiple}, 1));
  };
  EXPECT_THAT(rows(12, 8), ElementsAre(8, 8, 8, 6));
  EXPECT_THAT(rows(12, 1), ElementsAre(12, 12, 6));
  EXPECT_THAT(rows(30, 8), ElementsAre(30));
  EXPECT_THAT(rows(7, 8), ElementsAre(7, 7, 7, 7, 2));
}

TEST(Batcher, GivesAPairBeyondTheLimitABatchOfItsOwn) {
  const Batcher batcher(
      corpus_of_lengths({{3, 3}, {500, 3}, {3, 400}, {600, 600}}), {.max_tokens = 50}, 1);
  EXPECT_THAT(sizes(batcher), ElementsAre(1, 1, 1, 1));
}

TEST(Batcher, AgreesWithALookAheadOnRandomCorpora) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto lengths = random_lengths(1 + seed * 17, 5 + seed, seed);
    BatchingOptions options;
    options.max_tokens = 1 + (seed * 37) % 400;
    options.max_sentences = seed % 3 == 0 ? 1 + seed % 40 : 0;
    options.multiple = 1 + seed % 9;
    const Batcher batcher(corpus_of_lengths(lengths), options, seed);
    Lengths sorted = lengths;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> longer;
    for (const auto& [source, target] : sorted)
      longer.push_back(std::max(source, target) + 1);
    EXPECT_EQ(sizes(batcher), sizes_by_look_ahead(longer, options)) << seed;
  }
}

TEST(Batcher, OrderIsAFunctionOfSeedAndEpochAlone) {
  const auto corpus = corpus_of_lengths(random_lengths(2000, 30, 4));
  const BatchingOptions options{.max_tokens = 200};
  const Batcher batcher(corpus, options, 1);
  const auto first = batcher.order(1);
  EXPECT_EQ(first, Batcher(corpus, options, 1).order(1));
  EXPECT_NE(first, batcher.order(2));
  EXPECT_NE(first, Batcher(corpus, options, 2).order(1));
  auto sorted = batcher.order(7);
  ASSERT_EQ(static_cast<int64_t>(sorted.size()), batcher.size());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    ASSERT_EQ(sorted[i], i);
}

/// Samples without a source, of given lengths.
class TargetSamples : public SampleSource {
 public:
  explicit TargetSamples(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}
  int64_t size() const override { return std::ssize(lengths_); }
  int64_t source_length(int64_t /*index*/) const override { return 0; }
  int64_t target_length(int64_t index) const override {
    return lengths_.at(static_cast<size_t>(index));
  }
  Batch batch(std::span<const uint32_t> samples) const override {
    Batch batch;
    batch.rows = std::ssize(samples);
    batch.pairs.assign(samples.begin(), samples.end());
    return batch;
  }

 private:
  std::vector<int64_t> lengths_;
};

std::shared_ptr<const TargetSamples> random_targets(size_t count) {
  std::vector<int64_t> lengths;
  for (const auto& [source, target] : random_lengths(count, 40, 8))
    lengths.push_back(target);
  return std::make_shared<TargetSamples>(lengths);
}

TEST(Batcher, SortsSamplesWithoutASourceByTargetLengthAlone) {
  const auto samples = random_targets(700);
  const Batcher batcher(samples, {.max_tokens = 120, .multiple = 1}, 5);
  // The rule once more: the permutation that the seed draws, sorted stably.
  std::vector<int64_t> wanted(700);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<int64_t>(i);
  shuffle(wanted, mix_words(5, 0));
  std::stable_sort(wanted.begin(), wanted.end(), [&](int64_t a, int64_t b) {
    return samples->target_length(a) < samples->target_length(b);
  });
  std::vector<int64_t> walked;
  for (int64_t i = 0; i < batcher.size(); ++i) {
    const Batch batch = batcher.batch(i);
    int64_t tokens = 0, longest = 0;
    for (const int64_t sample : batch.pairs) {
      tokens += samples->target_length(sample);
      longest = std::max(longest, samples->target_length(sample));
    }
    EXPECT_LE(batch.rows * longest, 120);
    EXPECT_EQ(batcher.target_tokens(i), tokens);
    walked.insert(walked.end(), batch.pairs.begin(), batch.pairs.end());
  }
  EXPECT_EQ(walked, wanted);
}

TEST(Batcher, SamplesWithoutASourceFillTheBudgetWithTheirTokens) {
  // Eight blocks of 16 predicted tokens fill 128 exactly: no </s> is added.
  const Batcher batcher(
      std::make_shared<TargetSamples>(std::vector<int64_t>(20, 16)), {.max_tokens = 128}, 1);
  EXPECT_THAT(sizes(batcher), ElementsAre(8, 8, 4));
}

TEST(Batcher, OrderWithoutASourceIsAFunctionOfSeedAndEpoch) {
  const auto samples = random_targets(900);
  const BatchingOptions options{.max_tokens = 200};
  const Batcher batcher(samples, options, 1);
  ASSERT_GT(batcher.size(), 50);
  EXPECT_EQ(batcher.order(3), Batcher(samples, options, 1).order(3));
  EXPECT_NE(batcher.order(3), batcher.order(4));
  EXPECT_NE(batcher.order(3), Batcher(samples, options, 2).order(3));
}

TEST(Samples, SharedOnesAreCountedOnceEach) {
  using Sides = std::vector<std::vector<int32_t>>;
  const auto samples = [](Sides sources, Sides targets) {
    return pair_samples(
        {std::make_shared<testing::MemorySource>(std::move(sources)),
         std::make_shared<testing::MemorySource>(std::move(targets))});
  };
  const auto many = samples({{4}, {5, 6}, {5, 6}, {7}}, {{8, 9}, {10}, {10}, {11, 12}});
  const auto few = samples(
      {{5, 6}, {10}, {7}, {5, 6}, {4}, {5}}, {{10}, {5, 6}, {11, 13}, {10}, {8, 9}, {6, 10}});
  EXPECT_EQ(count_shared(*few, *many), 3);
  EXPECT_EQ(count_shared(*many, *few), 3);
  EXPECT_EQ(count_shared(*many, *many), 4);
  EXPECT_EQ(count_shared(*many, *samples({}, {})), 0);
}

TEST(Batcher, CutsPairsTheSameWhoeverMakesThemSamples) {
  const auto corpus = corpus_of_lengths(random_lengths(300, 20, 6));
  const BatchingOptions options{.max_tokens = 100};
  const Batcher direct(corpus, options, 4);
  const auto samples = pair_samples(corpus);
  const Batcher through(samples, options, 4);
  ASSERT_EQ(direct.size(), through.size());
  for (int64_t i = 0; i < direct.size(); ++i)
    EXPECT_EQ(direct.batch(i).pairs, through.batch(i).pairs);
  EXPECT_EQ(samples->size(), 300);
  EXPECT_EQ(samples->source_length(7), corpus.source->length(7) + 1);
  EXPECT_EQ(samples->target_length(7), corpus.target->length(7) + 1);
}

TEST(Batcher, RefusesWhatMakesNoBatches) {
  EXPECT_EQ(
      error_of([] { Batcher(std::shared_ptr<const SampleSource>(), {}, 1); }),
      "a batcher needs samples");
  EXPECT_EQ(
      error_of([] { Batcher(std::make_shared<TargetSamples>(std::vector<int64_t>()), {}, 1); }),
      "a corpus without samples has no batches");
  const auto corpus = corpus_of_lengths({{1, 1}});
  const auto usage = [&](const BatchingOptions& options) {
    return error_of<UsageError>([&] { Batcher(corpus, options, 1); });
  };
  EXPECT_EQ(usage({.max_tokens = 0}), "batching.max_tokens must be >= 1, but got 0");
  EXPECT_EQ(usage({.max_sentences = -1}), "batching.max_sentences must be >= 0, but got -1");
  EXPECT_EQ(usage({.multiple = 0}), "batching.multiple must be >= 1, but got 0");
  EXPECT_THAT(
      error_of([&] { Batcher(corpus_of_lengths({}), {}, 1); }), HasSubstr("without samples"));
  PairCorpus uneven = corpus;
  uneven.target = corpus_of_lengths({{1, 1}, {2, 2}}).target;
  EXPECT_THAT(error_of([&] { Batcher(uneven, {}, 1); }), HasSubstr("two sides of the same size"));
}

TEST(Batcher, RefusesBatchesAndEpochsThatAreNotThere) {
  const Batcher batcher(corpus_of_lengths({{1, 1}}), {}, 1);
  EXPECT_THAT(
      error_of([&] { batcher.batch(1); }), HasSubstr("batch 1 was asked for, but there are 1"));
  EXPECT_THAT(error_of([&] { batcher.target_tokens(-1); }), HasSubstr("batch -1 was asked for"));
  EXPECT_THAT(error_of([&] { batcher.order(0); }), HasSubstr("epochs count from 1, but got 0"));
}

}  // namespace
}  // namespace seqconv::internal
