#include "search/terms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "search/search.h"
#include "search/simulator.h"
#include "search/table_decoder.h"

namespace seqconv::internal {
namespace {

using decode::TermProgress;
using decode::Terms;
using testing::enumerate_hypotheses;
using testing::RandomTable;
using testing::TableDecoder;
using Tokens = std::vector<int32_t>;

TermProgress follow(const Terms& terms, const Tokens& tokens) {
  TermProgress progress;
  for (const int32_t token : tokens)
    progress = terms.follow(progress, token);
  return progress;
}

/// Tells by trying whether all terms from `first` on are in the tokens as whole words, none inside
/// another.
bool holds_all(
    Tokens tokens,
    const std::vector<Tokens>& terms,
    size_t first = 0,
    const Tokens& all = {},
    const WordEdges* edges = nullptr) {
  if (first == terms.size())
    return true;
  const Tokens& term = terms[first];
  for (auto at = tokens.begin();; ++at) {
    at = std::search(at, tokens.end(), term.begin(), term.end());
    if (at == tokens.end())
      return false;
    const auto begin = static_cast<size_t>(at - tokens.begin()), end = begin + term.size();
    if (edges != nullptr &&
        ((begin > 0 && !edges->part(all[begin - 1], all[begin])) ||
         (end < all.size() && !edges->part(all[end - 1], all[end]))))
      continue;
    Tokens rest = tokens;
    std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(begin), term.size(), -1);
    if (holds_all(rest, terms, first + 1, all, edges))
      return true;
  }
}

TEST(Terms, CountTheirTokensAndStartAnewWhenBrokenOff) {
  const Terms terms({{5, 6, 7}, {8}});
  EXPECT_EQ(terms.tokens(), 4);
  EXPECT_EQ(terms.tokens_in(follow(terms, {5, 6})), 2);
  EXPECT_EQ(terms.tokens_in(follow(terms, {5, 6, 8})), 1);
  EXPECT_EQ(terms.tokens_in(follow(terms, {5, 6, 5})), 1);
  EXPECT_EQ(terms.tokens_in(follow(terms, {8, 5, 6, 7})), 4);
  EXPECT_TRUE(terms.are_met(follow(terms, {4, 8, 4, 5, 6, 7, 4})));
  EXPECT_FALSE(terms.are_met(follow(terms, {5, 6, 4, 7, 8})));
}

TEST(Terms, TheLongestOfThoseThatBeginAlikeIsWaitedFor) {
  const Terms terms({{5}, {5, 6}});
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 6, 4, 5})));
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 4, 5, 6})));
  EXPECT_FALSE(terms.are_met(follow(terms, {5, 6, 4})));
  const Terms cities({{5, 6}, {5, 7}});  // New York, New Zealand
  EXPECT_TRUE(cities.are_met(follow(cities, {5, 7, 5, 6})));
  Tokens asked;
  cities.ask(follow(cities, {5}), asked);
  EXPECT_EQ(asked, Tokens({6, 7}));
}

TEST(Terms, OverlapsOfARunWithItsOwnBeginningAreFollowed) {
  const Terms terms({{5, 5, 6}});
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 5, 5, 6})));
}

TEST(Terms, AreWholeWords) {
  WordEdges edges{std::vector<bool>(9), std::vector<bool>(9)};
  edges.open[5] = edges.open[6] = edges.joins[6] = edges.joins[7] = true;  // _a, b, s
  const Terms terms({{5, 6}}, &edges);
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 6})));
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 6, 8})));
  EXPECT_FALSE(terms.are_met(follow(terms, {5, 6, 7})));
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 6, 7, 5, 6})));
  const Terms inside({{6}}, &edges);
  EXPECT_FALSE(inside.are_met(follow(inside, {5, 6})));
  EXPECT_TRUE(inside.are_met(follow(inside, {8, 6})));
  Tokens asked;
  inside.ask(follow(inside, {5}), asked);
  EXPECT_TRUE(asked.empty());
}

TEST(Terms, EqualOnesComeAsOftenAsTheyAreThere) {
  const Terms terms({{5}, {5}});
  EXPECT_FALSE(terms.are_met(follow(terms, {5, 4})));
  EXPECT_TRUE(terms.are_met(follow(terms, {5, 4, 5})));
}

TEST(Terms, WhatIsSaidToBeThereIsThere) {
  int64_t met = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    uint64_t next = 0;
    const auto draw = [&](uint32_t most) {
      return static_cast<int32_t>(random_word(seed, next++) % most);
    };
    std::vector<Tokens> terms(1 + draw(3));
    for (Tokens& term : terms)
      for (int32_t n = 1 + draw(3); n > 0; --n)
        term.push_back(4 + draw(3));
    Tokens tokens;
    for (int32_t n = draw(14); n > 0; --n)
      tokens.push_back(4 + draw(3));
    WordEdges edges{std::vector<bool>(7), std::vector<bool>(7)};
    for (size_t token = 4; token < 7; ++token) {
      edges.open[token] = draw(2) != 0;
      edges.joins[token] = draw(2) != 0;
    }
    const WordEdges* const own = seed % 2 == 0 ? nullptr : &edges;
    const Terms all(terms, own);
    const TermProgress progress = follow(all, tokens);
    EXPECT_LE(all.tokens_in(progress), all.tokens());
    if (!all.are_met(progress))
      continue;
    ++met;
    EXPECT_TRUE(holds_all(tokens, terms, 0, tokens, own)) << "seed " << seed;
  }
  EXPECT_GT(met, 400);
}

TEST(Terms, TooManyAreRefused) {
  EXPECT_THROW(Terms(std::vector<Tokens>(65, Tokens{5})), Error);
  EXPECT_THROW(Terms({Tokens(129, 5)}), Error);
  EXPECT_THROW(Terms({Tokens()}), Error);
}

/// A sentence of a random table, and what its translation must hold.
struct Case {
  RandomTable table;
  SearchInput input;

  explicit Case(uint64_t seed) {
    uint64_t next = 0;
    const auto draw = [&](uint32_t most) {
      return static_cast<int32_t>(random_word(~seed, next++) % most);
    };
    table.seed = seed;
    table.vocabulary = 8;
    input.terms.resize(static_cast<size_t>(1 + draw(2)));
    for (Tokens& term : input.terms)
      for (int32_t n = 1 + draw(2); n > 0; --n)
        term.push_back(3 + draw(5));
  }
};

std::vector<std::vector<Hypothesis>> run(
    const std::vector<Case>& cases, const DecodingOptions& options) {
  std::vector<SearchInput> inputs;
  std::vector<int64_t> numbers;
  for (const Case& one : cases) {
    inputs.push_back(one.input);
    numbers.push_back(static_cast<int64_t>(one.table.seed));
  }
  RandomTable table = cases.front().table;
  table.seed = 1;  // sentences differ by their numbers
  TableDecoder decoder(table, numbers);
  return search(decoder, inputs, options);
}

bool holds_all(const Hypothesis& hypothesis, const SearchInput& input) {
  return holds_all(hypothesis.tokens, input.terms);
}

TEST(SearchWithTerms, AWideBeamFindsTheBestThatHoldsThem) {
  DecodingOptions options;
  options.beam = 10'000;
  options.max_length_b = 4;
  options.min_length = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Case one(seed);
    RandomTable table = one.table;
    table.seed = 1;
    auto all = enumerate_hypotheses(
        [&](const Tokens& history) { return table.log_probs(static_cast<int64_t>(seed), history); },
        table.vocabulary,
        4,
        options.length_penalty);
    std::erase_if(all, [&](const Hypothesis& other) { return !holds_all(other, one.input); });
    ASSERT_FALSE(all.empty());
    const auto found = run({one}, options).front();
    EXPECT_EQ(found.front().tokens, all.front().tokens) << "seed " << seed;
    EXPECT_DOUBLE_EQ(found.front().score, all.front().score);
  }
}

TEST(SearchWithTerms, NarrowBeamsHoldThemWhateverIsBesideThem) {
  DecodingOptions options;
  options.max_length_b = 12;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    options.beam = 1 + static_cast<int64_t>(seed % 4);
    options.n_best = 1 + static_cast<int64_t>(seed % 2) * (options.beam - 1);
    options.no_repeat_ngram = static_cast<int64_t>(seed % 3);
    options.stepwise_length_penalty = seed % 5 == 0;
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 3; ++i)
      cases.emplace_back(3 * seed + i);
    cases[1].input.terms.clear();
    cases[2].input.terms.resize(4, {6, 7, 5});  // 12 tokens: there may be no room
    const auto together = run(cases, options);
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto alone = run({cases[i]}, options).front();
      ASSERT_EQ(alone.size(), together[i].size());
      for (size_t n = 0; n < alone.size(); ++n) {
        EXPECT_EQ(alone[n].tokens, together[i][n].tokens) << "seed " << seed;
        EXPECT_TRUE(i == 2 || holds_all(alone[n], cases[i].input)) << "seed " << seed;
      }
    }
  }
}

TEST(SearchWithTerms, ThoseOfThePrefixCount) {
  Case one(1);
  one.input.prefix = {5, 6};
  one.input.terms = {{5, 6}};
  DecodingOptions options;
  options.max_length_b = 2;  // no room for another one
  EXPECT_EQ(run({one}, options)[0][0].tokens, Tokens({5, 6, 2}));
}

TEST(SearchWithTerms, TheMaximumLengthLeavesAsManyAsThereIsRoomFor) {
  Case one(1);
  one.input.terms = {{5, 6}, {7, 3}};
  DecodingOptions options;
  options.max_length_b = 3;
  const auto found = run({one}, options).front();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().tokens.size(), 4u);
  const Terms terms(one.input.terms);
  EXPECT_EQ(terms.tokens_in(follow(terms, found.front().tokens)), 2);  // of a whole term
}

TEST(SearchWithTerms, TokensOutsideTheVocabularyAreRefused) {
  Case one(1);
  one.input.terms = {{8}};
  EXPECT_THROW(run({one}, {}), Error);
}

}  // namespace
}  // namespace seqconv::internal
