#include "seqconv/decode/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "seqconv/base/error.h"
#include "seqconv/base/random.h"

namespace seqconv {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<std::pair<int32_t, float>> select(
    const std::vector<float>& scores,
    const RowConstraint* constraint = nullptr,
    double unknown_penalty = 0,
    int64_t count = 3,
    const std::vector<int32_t>& excluded = {},
    const std::vector<int32_t>& words = {}) {
  std::vector<Candidate> out = {{77, 7.0f}};  // what was there goes
  select_candidates(
      {scores, words},
      constraint,
      unknown_penalty,
      excluded,
      count,
      out);
  std::vector<std::pair<int32_t, float>> pairs;
  for (const Candidate& c : out)
    pairs.emplace_back(c.token, c.score);
  return pairs;
}

using Pairs = std::vector<std::pair<int32_t, float>>;

/// The rules as a full sort.
Pairs sorted(
    std::vector<float> scores,
    const RowConstraint& constraint,
    double unknown_penalty,
    int64_t count,
    const std::vector<int32_t>& excluded) {
  if (scores.size() > 3)
    scores[3] = static_cast<float>(scores[3] - unknown_penalty);
  Pairs all;
  for (size_t i = 2; i < scores.size(); ++i) {
    const int32_t token = static_cast<int32_t>(i);
    const auto& banned = constraint.banned;
    if (!std::isnan(scores[i]) && scores[i] != kMinusInfinity &&
        std::count(banned.begin(), banned.end(), token) == 0 &&
        std::count(excluded.begin(), excluded.end(), token) == 0)
      all.emplace_back(token, scores[i]);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

TEST(SelectCandidates, AgreesWithAFullSortOnRandomRows) {
  const std::vector<size_t> sizes =
      {0, 1, 2, 3, 4, 5, 67, 68, 69, 131, 132, 133, 1000, 32768};
  for (const size_t size : sizes) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const uint64_t stream = mix_words(seed, size);
      const bool ties = seed % 2 == 0;
      std::vector<float> scores(size);
      for (size_t i = 0; i < size; ++i) {
        const uint32_t word = random_word(stream, i);
        scores[i] = ties ? -static_cast<float>(word % 7)
                         : -static_cast<float>(word) / 1e8f;
        if (seed % 5 == 0 && word % 11 == 0)
          scores[i] = word % 2 == 0 ? kNan : kMinusInfinity;
      }
      RowConstraint constraint;
      for (uint64_t i = 0; size > 0 && i < seed % 6; ++i)
        constraint.banned.push_back(
            static_cast<int32_t>(random_word(stream + 1, i) % size));
      const double penalty = static_cast<double>(seed % 3) - 1.0;
      std::vector<int32_t> excluded;
      if (seed % 4 == 0)  // the last rows, as dictionaries are filled up
        for (size_t i = size - std::min<size_t>(size, 7); i < size; ++i)
          excluded.push_back(static_cast<int32_t>(i));
      for (const int64_t count : {1, 2, 10, 5000})
        EXPECT_EQ(
            select(scores, &constraint, penalty, count, excluded),
            sorted(scores, constraint, penalty, count, excluded))
            << "V " << size << " seed " << seed << " count " << count;
    }
  }
}

TEST(SelectCandidates, HandlesRowsThatOnlyGrow) {
  std::vector<float> scores(5000);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = -5000.0f + static_cast<float>(i);
  EXPECT_EQ(
      select(scores),
      (Pairs{{4999, -1.0f}, {4998, -2.0f}, {4997, -3.0f}}));
}

TEST(SelectCandidates, NeverGivesPadOrBegin) {
  EXPECT_EQ(select({0, 0, -1, -2}), (Pairs{{2, -1.0f}, {3, -2.0f}}));
  EXPECT_EQ(select({0, 0}), Pairs{});
  EXPECT_EQ(select({}), Pairs{});
}

TEST(SelectCandidates, OrdersEqualScoresByToken) {
  EXPECT_EQ(
      select({0, 0, -1, -1, -1, -1}),
      (Pairs{{2, -1.0f}, {3, -1.0f}, {4, -1.0f}}));
}

TEST(SelectCandidates, GivesAForcedTokenAloneWithItsTrueScore) {
  RowConstraint constraint;
  constraint.forced = 3;
  constraint.banned = {3};
  EXPECT_EQ(select({0, 0, -1, -2, -3}, &constraint, 9.0), (Pairs{{3, -2.0f}}));
  EXPECT_EQ(select({0, 0, -1, kNan, -3}, &constraint), Pairs{});
  EXPECT_EQ(select({0, 0, -1, kMinusInfinity, 0}, &constraint), Pairs{});
}

TEST(SelectCandidates, NeverGivesAnExcludedTokenThatIsNotForced) {
  const std::vector<int32_t> excluded = {3, 5};
  EXPECT_EQ(
      select({0, 0, -4, -1, -3, -1}, nullptr, 0, 9, excluded),
      (Pairs{{4, -3.0f}, {2, -4.0f}}));
  RowConstraint constraint;
  constraint.forced = 5;
  EXPECT_EQ(
      select({0, 0, -4, -1, -3, -1}, &constraint, 0, 9, excluded),
      (Pairs{{5, -1.0f}}));
}

TEST(SelectCandidates, PenalisesTheUnknownTokenOrFavoursIt) {
  EXPECT_EQ(
      select({0, 0, -9, -1, -2}, nullptr, 1.5, 2),
      (Pairs{{4, -2.0f}, {3, -2.5f}}));
  std::vector<float> many(500, -2.0f);
  many[3] = -8.0f;
  EXPECT_EQ(select(many, nullptr, -7.0, 1), (Pairs{{3, -1.0f}}));
}

TEST(SelectCandidates, RefusesAForcedTokenOutsideTheVocabulary) {
  RowConstraint constraint;
  constraint.forced = 5;
  try {
    select({0, 0, -1, -2, -3}, &constraint);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "a forced token must be below the vocabulary size 5, but got 5");
  }
}

TEST(SelectCandidates, OfSomeWordsAreThoseWhereTheOthersAreImpossible) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const size_t size = 5 + random_word(seed, 0) % 300;
    const uint32_t rare = 1 + random_word(seed, 1) % 4;
    std::vector<float> all(size, kMinusInfinity), scores;
    std::vector<int32_t> words;
    for (size_t i = seed % 3; i < size; ++i) {
      const uint32_t word = random_word(seed, 2 + i);
      if (i != kEndId && word % rare != 0)
        continue;
      all[i] = -static_cast<float>(word / 7 % (seed % 2 == 0 ? 9 : 1 << 20));
      scores.push_back(all[i]);
      words.push_back(static_cast<int32_t>(i));
    }
    RowConstraint constraint;
    constraint.banned = {words.back(), 4};
    for (const int64_t count : {1, 3, 400})
      EXPECT_EQ(
          select(scores, &constraint, 1.5, count, {5}, words),
          select(all, &constraint, 1.5, count, {5}))
          << "seed " << seed << " count " << count;
    constraint.forced = words[words.size() / 2];
    EXPECT_EQ(
        select(scores, &constraint, 1.5, 3, {}, words),
        select(all, &constraint, 1.5, 3));
  }
}

TEST(SelectCandidates, RefusesAForcedTokenThatIsNoneOfTheWords) {
  RowConstraint constraint;
  constraint.forced = 6;
  try {
    select({-1, -2, -3}, &constraint, 0, 3, {}, {2, 5, 7});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "a forced token must be one of the 3 words that the sentence may have, "
        "but got 6");
  }
}

TEST(SelectCandidates, OfCountZeroIsEmpty) {
  EXPECT_EQ(select({0, 0, -1, -2}, nullptr, 0, 0), Pairs{});
}

}  // namespace
}  // namespace seqconv
