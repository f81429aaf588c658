#include "base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;

TEST(Philox, GivesThePublishedWords) {
  // Random123's known answers for philox4x32-10 with counter 0 and key 0.
  EXPECT_THAT(philox(0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
}

TEST(Philox, PutsSeedAndCounterIntoTheRightWords) {
  // From a second implementation in Python, with counter words 2 and 3 zero.
  EXPECT_THAT(
      philox(0xffffffffffffffffu, 0xffffffffffffffffu),
      ElementsAre(0x4d18d7d2u, 0x430ac65au, 0xbd2fa22au, 0x0afae10du));
  EXPECT_THAT(
      philox(0xb7a69584f3e2d1c0u, 0x0706050403020100u),
      ElementsAre(0x65ef04a2u, 0xe1420cbeu, 0xb765bee7u, 0xc0c5d256u));
}

TEST(RandomWord, WalksThroughTheBlocksWordByWord) {
  for (uint64_t i = 0; i < 64; ++i)
    EXPECT_EQ(random_word(5, i), philox(5, i / 4)[i % 4]);
  static_assert(random_word(0, 2) == 0xbc57ac4cu);
}

TEST(DropThreshold, DropsTheShareThatWasAsked) {
  EXPECT_EQ(drop_threshold(0.0), 0u);
  EXPECT_EQ(drop_threshold(0.5), 0x80000000u);
  EXPECT_EQ(drop_threshold(1.0), 0xffffffffu);
  const uint32_t threshold = drop_threshold(0.3);
  int dropped = 0;
  for (uint64_t i = 0; i < 100'000; ++i)
    dropped += random_word(11, i) < threshold;
  // 5 standard deviations: sqrt(100000 * 0.3 * 0.7) = 145.
  EXPECT_NEAR(dropped, 30'000, 725);
}

TEST(PlaceSeed, DiffersWithEveryPartOfTheKey) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (uint64_t update = 0; update < 20; ++update)
      for (uint64_t micro_batch = 0; micro_batch < 4; ++micro_batch)
        for (uint64_t place = 0; place < 20; ++place)
          seeds.insert(place_seed({seed, update, micro_batch}, place));
  EXPECT_EQ(seeds.size(), 4u * 20 * 4 * 20);
}

TEST(Shuffle, IsAPermutation) {
  for (const size_t size : {0, 1, 2, 3, 100, 5000}) {
    std::vector<size_t> items(size), wanted(size);
    std::iota(items.begin(), items.end(), size_t{0});
    wanted = items;
    shuffle(items, 3);
    EXPECT_TRUE(size < 100 || items != wanted);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, wanted);
  }
}

TEST(Shuffle, GivesTheSameOrderForEver) {
  // Training runs are resumed with these orders: they may never change.
  const auto shuffled = [](uint64_t seed) {
    std::vector<int> items(10);
    std::iota(items.begin(), items.end(), 0);
    shuffle(items, seed);
    return items;
  };
  EXPECT_THAT(shuffled(1), ElementsAre(0, 8, 9, 1, 6, 5, 3, 2, 7, 4));
  EXPECT_THAT(shuffled(2), ElementsAre(0, 9, 7, 8, 1, 4, 5, 2, 6, 3));
}

TEST(Shuffle, GivesEveryOrderItsShare) {
  std::vector<int> counts(6);
  for (uint64_t seed = 0; seed < 60'000; ++seed) {
    std::vector<int> items = {0, 1, 2};
    shuffle(items, seed);
    ++counts[static_cast<size_t>(items[0] * 2 + (items[1] > items[2]))];
  }
  // 5 standard deviations: sqrt(60000 / 6 * 5 / 6) = 91.
  for (const int count : counts)
    EXPECT_NEAR(count, 10'000, 460);
}

}  // namespace
}  // namespace seqconv::internal
