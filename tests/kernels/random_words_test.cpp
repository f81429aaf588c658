#include "kernels/dropout.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace seqconv::internal::kernels {
namespace {

const uint32_t* random_words(
    uint64_t seed, uint64_t first, int64_t count, std::vector<uint32_t>& buffer) {
  return random_word_rows(seed, first, 0, 1, count, buffer.data()).words;
}

TEST(RandomWords, EqualTheDefinitionAtEveryOffsetAndCount) {
  const uint64_t seed = 0x0123456789abcdefULL;
  for (const uint64_t first : {0, 1, 2, 3, 4, 31, 1000, 4093})
    for (const int64_t count : {0, 1, 3, 4, 5, 31, 32, 33, 127, 128, 129, 515}) {
      std::vector<uint32_t> buffer(count + kRandomWordsSlack, 7u);
      const uint32_t* words = random_words(seed, first, count, buffer);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(words[i], random_word(seed, first + i))
            << "first " << first << ", count " << count << ", word " << i;
    }
}

TEST(RandomWords, CountBeyondThirtyTwoBits) {
  // Counters around 2^32 carry into the second word of the block.
  const uint64_t first = (uint64_t{1} << 34) - 70;
  std::vector<uint32_t> buffer(150 + kRandomWordsSlack);
  const uint32_t* words = random_words(~0ULL, first, 150, buffer);
  for (int64_t i = 0; i < 150; ++i)
    ASSERT_EQ(words[i], random_word(~0ULL, first + i)) << i;
}

TEST(RandomWords, MatchTheKnownAnswerOfPhilox) {
  // Published test vector of Philox4x32-10 for key 0, counter 0.
  std::vector<uint32_t> buffer(4 + kRandomWordsSlack);
  const uint32_t* words = random_words(0, 0, 4, buffer);
  EXPECT_EQ(words[0], 0x6627e8d5u);
  EXPECT_EQ(words[1], 0xe169c58du);
  EXPECT_EQ(words[2], 0xbc57ac4cu);
  EXPECT_EQ(words[3], 0x9b00dbd8u);
}

TEST(RandomWords, StayInsideTheirSlack) {
  for (int64_t count = 0; count < 70; ++count)
    for (const uint64_t first : {0, 3}) {
      std::vector<uint32_t> buffer(count + kRandomWordsSlack + 1, 42u);
      random_words(5, first, count, buffer);
      EXPECT_EQ(buffer.back(), 42u) << count << " " << first;
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels
