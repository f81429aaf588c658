#include "search/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "search/constraints.h"

namespace seqconv::internal::decode {
namespace {

using Tokens = std::vector<int32_t>;

/// Two live hypotheses: "5 6" at -1.5 and "5 7" at -2.
Beam two_live() {
  Beam beam;
  beam.limits.max_length = 10;
  beam.nodes = {{-1, 5, -1.0f}, {0, 6, -0.5f}, {0, 7, -1.0f}};
  beam.live = {{1, 0, -1.5}, {2, 0, -2.0}};
  return beam;
}

Tokens tokens_of(const Beam& beam, int32_t node) {
  Tokens tokens;
  for (; node >= 0; node = beam.nodes[static_cast<size_t>(node)].parent)
    tokens.insert(tokens.begin(), beam.nodes[static_cast<size_t>(node)].token);
  return tokens;
}

TEST(BeamParts, ExpandRanksAllRowsByTheirSumThenRowThenToken) {
  const Beam beam = two_live();
  const std::vector<std::vector<Candidate>> rows = {
      {{4, -1.0f}, {9, -2.0f}}, {{2, -0.5f}, {3, -0.5f}, {8, -9.0f}}};
  const auto best = expand(beam, rows, 10, 4);
  ASSERT_EQ(best.size(), 4u);
  EXPECT_EQ(best[0].row, 0);
  EXPECT_EQ(best[0].token, 4);
  EXPECT_DOUBLE_EQ(best[0].log_probability, -2.5);
  EXPECT_EQ(best[1].row, 1);
  EXPECT_EQ(best[1].token, 2);
  EXPECT_EQ(best[2].token, 3);
  EXPECT_EQ(best[3].token, 9);
}

TEST(BeamParts, SharedTokensAreThoseOfAllThatMayBeTheBest) {
  Beam beam = two_live();
  EXPECT_EQ(shared_tokens(beam), Tokens({5}));
  Hypothesis best, worse;
  best.tokens = {4, 2};
  best.score = -1;
  worse.tokens = {5, 6, 2};
  worse.score = -2;
  beam.finished = {worse};
  EXPECT_EQ(shared_tokens(beam), Tokens({5}));
  beam.live.pop_back();
  EXPECT_EQ(shared_tokens(beam), Tokens({5, 6}));
  beam.finished = {worse, best};
  EXPECT_EQ(shared_tokens(beam), Tokens());
  EXPECT_EQ(shared_tokens(Beam()), Tokens());
}

TEST(BeamParts, ExpandRefusesCandidatesForOtherRows) {
  const std::vector<std::vector<Candidate>> one_row(1);
  try {
    expand(two_live(), one_row, 10, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "candidates must come for 2 rows, but the decoder gave 1");
  }
}

TEST(BeamParts, FinishTakesAnEndOnlyFromTheFirstRanks) {
  Beam beam = two_live();
  DecodingOptions options;
  options.beam = 2;
  options.length_penalty = 2;
  const std::vector<Extension> extensions = {
      {0, 4, -0.5f, -2.0}, {0, 2, -1.0f, -2.5}, {1, 2, -1.0f, -3.0}};  // third of a beam of two
  finish(beam, extensions, options);
  ASSERT_EQ(beam.finished.size(), 1u);
  const Hypothesis& h = beam.finished[0];
  EXPECT_EQ(h.tokens, (Tokens{5, 6, 2}));
  EXPECT_EQ(h.token_scores, (std::vector<float>{-1.0f, -0.5f, -1.0f}));
  EXPECT_DOUBLE_EQ(h.log_probability, -2.5);
  EXPECT_DOUBLE_EQ(h.score, -2.5 / 9);
}

TEST(BeamParts, FinishNeverHoldsMoreThanTheBeam) {
  Beam beam = two_live();
  beam.finished.resize(1);
  DecodingOptions options;
  options.beam = 2;
  const std::vector<Extension> ends = {{0, 2, -1.0f, -2.5}, {1, 2, -1.0f, -3.0}};
  finish(beam, ends, options);
  EXPECT_EQ(beam.finished.size(), 2u);
}

TEST(BeamParts, FinishedHypothesesKeepTheirPlacesUnderAStepwisePenalty) {
  Beam beam = two_live();
  beam.finished.resize(2);
  beam.finished[0].score = -9;
  beam.finished[1].score = -1;
  DecodingOptions options;
  options.beam = 3;
  options.length_penalty = 2;
  const std::vector<Extension> extensions = {
      {0, 4, -0.5f, -8.0},   // of three tokens: -8/9
      {1, 2, -1.0f, -9.0},   // -1, as a finished one
      {1, 5, -1.0f, -10.0},  // the fourth of a beam of three
      {0, 5, -4.0f, -12.0}};
  EXPECT_EQ(within_beam(beam, extensions, 3, options), 2u);
  options.beam = 2;
  EXPECT_EQ(within_beam(beam, extensions, 3, options), 1u);
  options.beam = 100;
  EXPECT_EQ(within_beam(beam, extensions, 3, options), 4u);
  options.beam = 1;
  beam.finished[1].score = -0.5;
  EXPECT_EQ(within_beam(beam, extensions, 3, options), 0u);
}

TEST(BeamParts, AStepwisePenaltyFinishesMoreThanTheBeam) {
  Beam beam = two_live();
  beam.finished.resize(1);
  beam.finished[0].score = -99;
  DecodingOptions options;
  options.beam = 1;
  options.stepwise_length_penalty = true;
  advance(beam, 2, std::vector<std::vector<Candidate>>{{{2, -1.0f}}, {}}, 10, options);
  ASSERT_EQ(beam.finished.size(), 2u);
  EXPECT_TRUE(beam.live.empty());
  EXPECT_EQ(best_finished(std::move(beam), 1)[0].tokens, (Tokens{5, 6, 2}));
}

TEST(BeamParts, PruneKeepsTheBestThatGoOnAndTheirParents) {
  Beam beam = two_live();
  const std::vector<Extension> extensions = {
      {1, 4, -0.1f, -2.1}, {0, 2, -0.7f, -2.2}, {1, 8, -0.3f, -2.3}, {0, 9, -0.9f, -2.4}};
  prune(beam, extensions, 2);
  ASSERT_EQ(beam.live.size(), 2u);
  EXPECT_EQ(beam.live[0].row, 1);
  EXPECT_EQ(beam.live[1].row, 1);
  EXPECT_DOUBLE_EQ(beam.live[1].log_probability, -2.3);
  EXPECT_EQ(tokens_of(beam, beam.live[0].node), (Tokens{5, 7, 4}));
  EXPECT_EQ(tokens_of(beam, beam.live[1].node), (Tokens{5, 7, 8}));
}

TEST(BeamParts, GiveUpEndsTheBestLiveHypothesis) {
  Beam beam = two_live();
  give_up(beam, {});
  ASSERT_EQ(beam.finished.size(), 1u);
  EXPECT_EQ(beam.finished[0].tokens, (Tokens{5, 6, 2}));
  EXPECT_TRUE(std::isinf(beam.finished[0].score));
}

TEST(BeamParts, BestFinishedSortsByScoreAndKeepsTheOrderOfEqualOnes) {
  Beam beam;
  beam.finished.resize(3);
  beam.finished[0] = {{4, 2}, {}, -4, -2};
  beam.finished[1] = {{5, 2}, {}, -2, -1};
  beam.finished[2] = {{6, 2}, {}, -4, -2};
  const auto best = best_finished(std::move(beam), 2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].tokens, (Tokens{5, 2}));
  EXPECT_EQ(best[1].tokens, (Tokens{4, 2}));
}

TEST(Constraints, MaximumLengthIsTheSmallerOfFormulaAndDecoder) {
  DecodingOptions options;
  EXPECT_EQ(maximum_length(options, 7, 1024), 200);
  EXPECT_EQ(maximum_length(options, 7, 100), 99);
  options.max_length_a = 1.2;
  options.max_length_b = 10;
  EXPECT_EQ(maximum_length(options, 7, 1024), 18);  // int(18.4)
  options.max_length_a = 1e300;
  EXPECT_EQ(maximum_length(options, 7, INT64_MAX),
            INT64_MAX - 1);  // no overflow
}

TEST(Constraints, ComeInTheOrderMaximumThenPrefixThenBans) {
  Limits limits;
  limits.max_length = 3;
  limits.min_length = 9;
  limits.no_repeat_ngram = 1;
  limits.prefix = {5, 5, 5, 5, 5};
  RepeatedNgrams ngrams(1);
  EXPECT_EQ(ngrams.add(ngrams.add(-1, 5), 5), 1);
  EXPECT_EQ(row_constraint(limits, 2, ngrams, 1).forced, 5);
  EXPECT_TRUE(row_constraint(limits, 2, ngrams, 1).banned.empty());
  EXPECT_EQ(row_constraint(limits, 3, ngrams, 1).forced, 2);
  limits.prefix.clear();
  const RowConstraint free = row_constraint(limits, 1, ngrams, ngrams.add(-1, 6));
  EXPECT_EQ(free.forced, -1);
  EXPECT_EQ(free.banned, (Tokens{2, 6}));
}

TEST(Constraints, AreAbsentWhereNothingLimitsAStep) {
  Limits limits;
  limits.max_length = 3;
  limits.min_length = 1;
  EXPECT_TRUE(constrains(limits, 0));
  EXPECT_FALSE(constrains(limits, 1));
  EXPECT_FALSE(constrains(limits, 2));
  EXPECT_TRUE(constrains(limits, 3));
  limits.prefix = {7, 7};
  EXPECT_TRUE(constrains(limits, 1));
  limits.no_repeat_ngram = 3;
  EXPECT_TRUE(constrains(limits, 2));
}

TEST(Constraints, PrefixStopsAtItsEnd) {
  SearchInput input;
  input.prefix = {4, 2, 6};
  EXPECT_EQ(make_limits({}, input, 10).prefix, (Tokens{4, 2}));
  input.prefix = {4, 6};
  EXPECT_EQ(make_limits({}, input, 10).prefix, (Tokens{4, 6}));
}

/// By looking at every n-gram of the tokens.
Tokens looked_up(const Tokens& tokens, int64_t n) {
  Tokens banned;
  const auto length = std::ssize(tokens);
  for (int64_t start = 0; n > 0 && start + n <= length; ++start) {
    const auto ngram = tokens.begin() + start;
    if (std::equal(ngram, ngram + n - 1, tokens.end() - (n - 1)))
      banned.push_back(ngram[n - 1]);
  }
  std::ranges::sort(banned);
  banned.erase(std::ranges::unique(banned).begin(), banned.end());
  return banned;
}

/// Behind a history, whose first </s> is no token.
Tokens banned_after(const Tokens& history, int64_t n) {
  RepeatedNgrams ngrams(n);
  int32_t last = -1;
  for (size_t i = 1; i < history.size(); ++i)
    last = ngrams.add(last, history[i]);
  Tokens banned;
  ngrams.ban(last, banned);
  std::ranges::sort(banned);
  return banned;
}

TEST(RepeatedNgrams, AreThoseOfEachBranchOfATree) {
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const int64_t n : {0, 1, 2, 3, 5}) {
      RepeatedNgrams ngrams(n);
      std::vector<Tokens> all;
      const uint64_t words = 2 + seed % 4;
      for (uint64_t i = 0; i < 200; ++i) {
        // Most go on with one of the last, as hypotheses do.
        const auto parent = i == 0 || random_word(seed, 2 * i) % 50 == 0
            ? -1
            : static_cast<int32_t>(i - 1 - random_word(seed, 2 * i) % std::min<uint64_t>(i, 4));
        Tokens own = parent < 0 ? Tokens() : all[static_cast<size_t>(parent)];
        own.push_back(static_cast<int32_t>(3 + random_word(seed, 2 * i + 1) % words));
        const int32_t number = ngrams.add(parent, own.back());
        Tokens banned;
        ngrams.ban(number, banned);
        std::ranges::sort(banned);
        ASSERT_EQ(banned, looked_up(own, n)) << "n = " << n << ", " << i;
        all.push_back(std::move(own));
      }
    }
}

TEST(RepeatedNgrams, LeaveTheEndThatStartsEveryTargetAlone) {
  EXPECT_EQ(banned_after({2, 5}, 1), Tokens{5});
  EXPECT_EQ(banned_after({2}, 1), Tokens{});
  EXPECT_EQ(banned_after({2}, 2), Tokens{});
}

TEST(RepeatedNgrams, AreBannedByTheirLastToken) {
  EXPECT_EQ(banned_after({2, 5, 6, 7, 5, 6}, 3), Tokens{7});
  EXPECT_EQ(banned_after({2, 5, 6, 5, 7, 5}, 2), (Tokens{6, 7}));
  EXPECT_EQ(banned_after({2, 5, 6, 5, 6, 5}, 2), Tokens{6});
  EXPECT_EQ(banned_after({2, 5, 6}, 3), Tokens{});
  EXPECT_EQ(banned_after({2, 5, 6, 7}, 0), Tokens{});
}

TEST(RepeatedNgrams, SeeOverlappingOnes) {
  EXPECT_EQ(banned_after({2, 5, 5, 5}, 3), Tokens{5});
  EXPECT_EQ(banned_after({2, 5, 5}, 3), Tokens{});
}

}  // namespace
}  // namespace seqconv::internal::decode
