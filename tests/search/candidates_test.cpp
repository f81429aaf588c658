#include "search/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "search/table_decoder.h"

namespace seqconv::internal {
namespace {

using testing::kMinusInfinity;
using testing::kNan;
using Pairs = std::vector<std::pair<int32_t, float>>;

Pairs pairs_of(const std::vector<Candidate>& candidates) {
  Pairs pairs;
  for (const Candidate& c : candidates)
    pairs.emplace_back(c.token, c.score);
  return pairs;
}

Pairs select(const WordScores& scores, const StepConstraints& constraints, int64_t count) {
  std::vector<Candidate> out = {{77, 7.0f}};  // what was there goes
  select_candidates(scores, constraints, /*row=*/0, count, out);
  return pairs_of(out);
}

StepConstraints constraints_of(
    const RowConstraint* constraint,
    double unknown_penalty = 0,
    const std::vector<int32_t>& excluded = {}) {
  StepConstraints constraints{unknown_penalty, excluded, {}};
  if (constraint != nullptr)
    constraints.rows = {constraint, 1};
  return constraints;
}

Pairs select(
    const std::vector<float>& scores,
    const RowConstraint* constraint = nullptr,
    double unknown_penalty = 0,
    int64_t count = 3,
    const std::vector<int32_t>& excluded = {},
    const std::vector<int32_t>& words = {}) {
  return select({scores, words}, constraints_of(constraint, unknown_penalty, excluded), count);
}

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
  std::stable_sort(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

TEST(SelectCandidates, AgreesWithAFullSortOnRandomRows) {
  const std::vector<size_t> sizes = {0, 1, 2, 3, 4, 5, 67, 68, 69, 131, 132, 133, 1000, 32768};
  for (const size_t size : sizes) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const uint64_t stream = mix_words(seed, size);
      const bool ties = seed % 2 == 0;
      std::vector<float> scores(size);
      for (size_t i = 0; i < size; ++i) {
        const uint32_t word = random_word(stream, i);
        scores[i] = ties ? -static_cast<float>(word % 7) : -static_cast<float>(word) / 1e8f;
        if (seed % 5 == 0 && word % 11 == 0)
          scores[i] = word % 2 == 0 ? kNan : kMinusInfinity;
      }
      RowConstraint constraint;
      for (uint64_t i = 0; size > 0 && i < seed % 6; ++i)
        constraint.banned.push_back(static_cast<int32_t>(random_word(stream + 1, i) % size));
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
  EXPECT_EQ(select(scores), (Pairs{{4999, -1.0f}, {4998, -2.0f}, {4997, -3.0f}}));
}

TEST(SelectCandidates, NeverGivesPadOrBegin) {
  EXPECT_EQ(select({0, 0, -1, -2}), (Pairs{{2, -1.0f}, {3, -2.0f}}));
  EXPECT_EQ(select({0, 0}), Pairs{});
  EXPECT_EQ(select({}), Pairs{});
}

TEST(SelectCandidates, OrdersEqualScoresByToken) {
  EXPECT_EQ(select({0, 0, -1, -1, -1, -1}), (Pairs{{2, -1.0f}, {3, -1.0f}, {4, -1.0f}}));
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
      select({0, 0, -4, -1, -3, -1}, nullptr, 0, 9, excluded), (Pairs{{4, -3.0f}, {2, -4.0f}}));
  RowConstraint constraint;
  constraint.forced = 5;
  EXPECT_EQ(select({0, 0, -4, -1, -3, -1}, &constraint, 0, 9, excluded), (Pairs{{5, -1.0f}}));
}

TEST(SelectCandidates, PenalisesTheUnknownTokenOrFavoursIt) {
  EXPECT_EQ(select({0, 0, -9, -1, -2}, nullptr, 1.5, 2), (Pairs{{4, -2.0f}, {3, -2.5f}}));
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
    EXPECT_STREQ(error.what(), "a forced token must be below the vocabulary size 5, but got 5");
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
    EXPECT_EQ(select(scores, &constraint, 1.5, 3, {}, words), select(all, &constraint, 1.5, 3));
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
        "a forced token must be one of the 3 words that the sentence may have, but got 6");
  }
}

TEST(SelectCandidates, OfCountZeroIsEmpty) {
  EXPECT_EQ(select({0, 0, -1, -2}, nullptr, 0, 0), Pairs{});
}

/// Logits with many that are equal, or that rounding makes equal.
std::vector<float> made_logits(uint64_t seed, size_t size) {
  constexpr float kScales[] = {1, 1e-6F, 30, 1e6F, 1e30F};
  const float scale = kScales[seed % std::size(kScales)];
  const uint32_t kinds = seed % 3 == 0 ? 1 << 30 : 5 + seed % 60;
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) {
    const uint32_t word = random_word(seed, i);
    float& logit = logits[i];
    logit = scale * static_cast<float>(word % kinds) / static_cast<float>(kinds);
    if (word % 3 == 0)
      logit = std::nextafter(logit, kMinusInfinity);
    if (seed % 4 == 0 && word % 13 == 0)
      logit = kMinusInfinity;
    if (seed % 32 == 5 && word % 7 == 0)
      logit = kNan;
    if (seed % 32 == 9 && word % 90 == 0)
      logit = -kMinusInfinity;
  }
  return logits;
}

/// What a softmax takes away, of the words' own band at last.
WordScores softmax_of(const std::vector<float>& logits, uint64_t seed) {
  WordScores scores = {logits};
  scores.maximum = kMinusInfinity;
  for (const float logit : logits)
    scores.maximum = std::fmax(scores.maximum, logit);
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit) - scores.maximum);
  scores.log_sum = static_cast<float>(std::log(sum));
  if (seed % 5 < 2)
    scores.band_cost = seed % 5 == 0 ? 17.3F : 1e-3F;
  return scores;
}

std::vector<float> log_probabilities_of(const WordScores& scores) {
  std::vector<float> all;
  for (const float logit : scores.logits)
    all.push_back(scores.log_probability(logit));
  return all;
}

std::vector<float> maxima_of(const std::vector<float>& logits) {
  std::vector<float> maxima(logits.size() / kWordBlock, kMinusInfinity);
  for (size_t i = 0; i < maxima.size() * kWordBlock; ++i)
    maxima[i / kWordBlock] = std::fmax(maxima[i / kWordBlock], logits[i]);
  return maxima;
}

TEST(SelectCandidates, OfLogitsAreThoseOfTheirLogProbabilities) {
  size_t equal = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const size_t size = 1 + random_word(seed, 1 << 20) % 900;
    const std::vector<float> logits = made_logits(seed, size);
    const std::vector<float> maxima = maxima_of(logits);
    std::vector<int32_t> words, excluded;
    for (size_t i = 0; i < size; ++i)
      words.push_back(static_cast<int32_t>(i * (1 + seed % 2) + seed % 7 / 6));
    RowConstraint constraint;
    for (uint64_t i = 0; i < seed % 6; ++i)
      constraint.banned.push_back(words[random_word(seed + 1, i) % size]);
    if (seed % 4 == 0)
      excluded.assign(words.end() - std::min<std::ptrdiff_t>(7, std::ssize(words)), words.end());
    if (seed % 11 == 0)
      constraint.forced = words[random_word(seed, 1 << 21) % size];
    const StepConstraints constraints =
        constraints_of(&constraint, static_cast<double>(seed % 3) - 1.0, excluded);
    WordScores scores = softmax_of(logits, seed);
    if (seed % 2 == 1 || seed % 7 == 6)
      scores.words = words;
    const std::vector<float> all = log_probabilities_of(scores);
    for (const int64_t count : {1, 2, 10, 2000}) {
      scores.block_maxima = count == 2 ? std::span<const float>{} : maxima;
      const Pairs wanted = select({all, scores.words}, constraints, count);
      EXPECT_EQ(select(scores, constraints, count), wanted)
          << "V " << size << " seed " << seed << " count " << count;
      for (size_t i = 1; i < wanted.size(); ++i)
        equal += wanted[i].second == wanted[i - 1].second ? 1 : 0;
    }
  }
  EXPECT_GT(equal, 5000u);  // or it would not be much of a test
}

TEST(BestCandidates, OfBandsAreThoseOfAllWordsWhereTheOthersAreNotAdmitted) {
  size_t left_out = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const size_t size = 70 + random_word(seed, 1 << 20) % 600;
    std::vector<float> all =
        log_probabilities_of(softmax_of(made_logits(seed - seed % 32, size), seed));
    RowConstraint constraint;
    constraint.banned = {2, static_cast<int32_t>(seed % size)};
    const StepConstraints constraints = constraints_of(&constraint, 0.25);
    for (const int64_t count : {1, 4, 300}) {
      std::vector<Candidate> out;
      BestCandidates best(constraints, /*row=*/0, count, out);
      for (size_t begin = 0, end; begin < size; begin = end) {
        end = std::min(size, begin + 1 + random_word(seed, begin) % 200);
        if (begin == 0)
          end = std::max(end, kWordBlock);
        WordScores band = {std::span(all).subspan(begin, end - begin)};
        band.first = static_cast<int32_t>(begin);
        const float bound = std::ranges::max(band.logits);
        if (begin == 0 || best.admits(bound))
          best.add(band);
        else
          left_out += 1;
      }
      best.finish();
      EXPECT_EQ(pairs_of(out), select({all}, constraints, count))
          << "V " << size << " seed " << seed << " count " << count;
    }
  }
  EXPECT_GT(left_out, 500u);
}

}  // namespace
}  // namespace seqconv::internal
