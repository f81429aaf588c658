#include "text/corpus/word_aligner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A pair of two made-up languages, and which words belong together.
struct MadeUpPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
  std::vector<AlignedTokens> links;
};

/// Sentences of phrases: nouns with an adjective that stands behind in the target, numbers
/// whose tens and ones change places around an "and" that the target lacks, and verbs that
/// are two words there.
class MadeUpLanguages {
 public:
  static constexpr int64_t kWords = 400;

  explicit MadeUpLanguages(unsigned seed) : random_(seed) {}

  MadeUpPair next() {
    MadeUpPair pair;
    for (int phrases = 1 + draw(3); phrases > 0; --phrases)
      switch (draw(3)) {
        case 0:
          add(pair, {10 + draw(40), 60 + draw(60)}, {1, 0});
          break;
        case 1:
          add_number(pair);
          break;
        default:
          add_verb(pair);
      }
    std::ranges::sort(pair.links);
    return pair;
  }

 private:
  int32_t draw(int32_t below) {
    return static_cast<int32_t>(random_() % static_cast<unsigned>(below));
  }

  /// Words that are one to one; number i of the target is that of source word order[i].
  static void add(
      MadeUpPair& pair, const std::vector<int32_t>& words, const std::vector<int64_t>& order) {
    const int64_t s = std::ssize(pair.source), t = std::ssize(pair.target);
    pair.source.insert(pair.source.end(), words.begin(), words.end());
    for (size_t i = 0; i < order.size(); ++i) {
      pair.target.push_back(200 + words[static_cast<size_t>(order[i])]);
      pair.links.push_back({s + order[i], t + static_cast<int64_t>(i)});
    }
  }
  /// "three and twenty": "twenty three"; 5 is "and".
  void add_number(MadeUpPair& pair) { add(pair, {120 + draw(9), 5, 130 + draw(8)}, {2, 0}); }
  void add_verb(MadeUpPair& pair) {
    const int64_t s = std::ssize(pair.source), t = std::ssize(pair.target);
    const int32_t verb = draw(30);
    pair.source.push_back(140 + verb);
    pair.target.push_back(340 + verb);
    pair.target.push_back(370 + verb % 10);  // shared by three verbs
    pair.links.push_back({s, t});
    pair.links.push_back({s, t + 1});
  }

  std::mt19937 random_;
};

TEST(WordAligner, FindsWhatIsKnownOfMadeUpLanguages) {
  for (const unsigned seed : {1U, 2U}) {
    MadeUpLanguages languages(seed);
    WordAligner words(MadeUpLanguages::kWords, MadeUpLanguages::kWords);
    for (int i = 0; i < 3000; ++i) {
      const MadeUpPair pair = languages.next();
      words.add(pair.source, pair.target);
    }
    words.learn(5);
    int64_t both = 0, found = 0, wanted = 0;
    for (int i = 0; i < 300; ++i) {  // that were not learned from
      const MadeUpPair pair = languages.next();
      const auto links = words.align(pair.source, pair.target);
      found += std::ssize(links);
      wanted += std::ssize(pair.links);
      for (const AlignedTokens& link : links)
        both += std::ranges::count(pair.links, link);
    }
    EXPECT_GT(both, 95 * found / 100) << "of " << found;
    EXPECT_GT(both, 95 * wanted / 100) << "of " << wanted;
  }
}

/// F1 of the links of random digits, few of which come once in a sentence, that stand in the
/// order that `turn` makes of their places.
template <class Turn>
double f1_of_digits(const Turn& turn) {
  std::mt19937 random(7);
  const auto next = [&](int64_t length) {
    MadeUpPair pair;
    for (int64_t i = 0; i < length; ++i)
      pair.source.push_back(4 + static_cast<int32_t>(random() % 10));
    for (int64_t t = 0; t < length; ++t) {
      pair.target.push_back(20 + pair.source[static_cast<size_t>(turn(t, length))]);
      pair.links.push_back({turn(t, length), t});
    }
    return pair;
  };
  WordAligner words(50, 50);
  for (int i = 0; i < 500; ++i) {
    const MadeUpPair pair = next(1 + i % 12);
    words.add(pair.source, pair.target);
  }
  words.learn(5);
  double both = 0, found = 0, wanted = 0;
  for (int i = 0; i < 200; ++i) {
    const MadeUpPair pair = next(1 + i % 12);
    const auto links = words.align(pair.source, pair.target);
    found += static_cast<double>(links.size());
    wanted += static_cast<double>(pair.links.size());
    for (const AlignedTokens& link : links)
      both += static_cast<double>(std::ranges::count(pair.links, link));
  }
  return 2 * both / (found + wanted);
}

TEST(WordAligner, LearnsTheOrderInWhichEqualWordsBelongTogether) {
  const auto same = [](int64_t t, int64_t) { return t; };
  const auto reversed = [](int64_t t, int64_t length) { return length - 1 - t; };
  const auto turned = [](int64_t t, int64_t length) { return (t + length / 2) % length; };
  EXPECT_EQ(f1_of_digits(same), 1);
  EXPECT_GT(f1_of_digits(reversed), 0.99);
  EXPECT_GT(f1_of_digits(turned), 0.95);
}

TEST(WordAligner, LeavesPairsOutThatWouldNeedTooMuchMemory) {
  WordAligner words(10, 10);
  const std::vector<int32_t> one = {4}, side(1 << 12, 4), longer((1 << 12) + 1, 4);
  static_assert(WordAligner::kMostProducts == 2 << 24);
  EXPECT_TRUE(words.add(side, side));
  EXPECT_FALSE(words.add(longer, side));
  EXPECT_TRUE(words.add(side, side));
  EXPECT_FALSE(words.add(one, one));
}

TEST(WordAligner, TakesTheNearestOfEqualWords) {
  WordAligner words(10, 10);
  const std::vector<int32_t> a = {4}, b = {5};
  words.add(a, a);
  words.add(b, b);
  words.learn(5);
  const std::vector<int32_t> twice = {4, 5, 4};
  EXPECT_THAT(
      words.align(twice, twice),
      ElementsAre(AlignedTokens{0, 0}, AlignedTokens{1, 1}, AlignedTokens{2, 2}));
}

TEST(WordAligner, KnowsNothingOfWordsThatItHasNotSeen) {
  WordAligner words(10, 10);
  const std::vector<int32_t> seen = {4}, other = {7};
  words.add(seen, seen);
  words.learn(2);
  EXPECT_THAT(words.align(other, seen), IsEmpty());
  EXPECT_THAT(words.align({}, seen), IsEmpty());
  EXPECT_THROW(words.add({}, seen), Error);
}

}  // namespace
}  // namespace seqconv::internal
