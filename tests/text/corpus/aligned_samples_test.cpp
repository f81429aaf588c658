#include "text/corpus/aligned_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "memory_source.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Rows = std::vector<std::vector<int32_t>>;

std::shared_ptr<const SampleSource> samples_of(Rows sources, Rows targets) {
  return pair_samples(
      {std::make_shared<testing::MemorySource>(std::move(sources)),
       std::make_shared<testing::MemorySource>(std::move(targets))});
}

/// Word n of the source is n + 10 in the target, where words stand in reversed order.
std::shared_ptr<const SampleSource> reversed_samples() {
  Rows sources = {{4, 5}, {5, 6, 7}, {7, 4}, {6, 5}, {4}, {5}, {6}, {7}, {}}, targets;
  for (const auto& source : sources) {
    targets.emplace_back(source.rbegin(), source.rend());
    for (int32_t& word : targets.back())
      word += 10;
  }
  return samples_of(sources, targets);
}

TEST(AlignedSamples, GiveBatchesTheirLinks) {
  const auto plain = reversed_samples();
  const auto aligned =
      aligned_samples(plain, std::make_shared<WordAligner>(learn_words(*plain, 20, 20, 100)));
  EXPECT_EQ(aligned->size(), plain->size());
  EXPECT_EQ(aligned->source_length(1), 4);
  EXPECT_EQ(aligned->target_length(1), 4);
  EXPECT_EQ(aligned->checksum(1), plain->checksum(1));
  const std::vector<uint32_t> some = {2, 8, 1};
  EXPECT_THAT(plain->batch(some).links, IsEmpty());
  const Batch batch = aligned->batch(some);
  EXPECT_EQ(batch.source, plain->batch(some).source);
  EXPECT_THAT(
      batch.links,
      ElementsAre(
          BatchLink{0, 0, 1},
          BatchLink{0, 1, 0},
          BatchLink{2, 0, 2},
          BatchLink{2, 1, 1},
          BatchLink{2, 2, 0}));
  EXPECT_THAT(cut_rows(batch, 0, 1).links, ElementsAre(BatchLink{0, 0, 1}, BatchLink{0, 1, 0}));
  EXPECT_THAT(cut_rows(batch, 1, 1).links, IsEmpty());
  EXPECT_EQ(cut_rows(batch, 1, 2).links.front(), (BatchLink{1, 0, 2}));
}

TEST(AlignedSamples, AreSpreadOverACorpusWithoutEmptyOnes) {
  const auto samples = reversed_samples();
  EXPECT_THAT(spread_samples(*samples, 3), ElementsAre(0, 3, 6));
  EXPECT_THAT(spread_samples(*samples, 5), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(
      spread_samples(*samples_of({{4}, std::vector<int32_t>(200, 4)}, {{4}, {4}}), 9),
      ElementsAre(0))
      << "201 tokens with </s>";
}

TEST(AlignedSamples, AreLearnedFromAsFarAsMemoryReaches) {
  const auto chosen_of = [](size_t count, size_t length) {
    const Rows rows(count, std::vector<int32_t>(length, 4));
    return spread_samples_to_learn(*samples_of(rows, rows), 5000);
  };
  EXPECT_EQ(chosen_of(1000, 150).size(), 1000u);
  const auto half = chosen_of(2001, 150);
  EXPECT_EQ(half.size(), 1001u);
  EXPECT_EQ(half.back(), 2000u);
  EXPECT_EQ(chosen_of(4000, 150).size(), 1000u);
}

}  // namespace
}  // namespace seqconv::internal
