#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "search/simulator.h"
#include "search/table_decoder.h"

namespace seqconv::internal {
namespace {

using testing::enumerate_hypotheses;
using testing::kMinusInfinity;
using testing::NextLogProbs;
using testing::RandomTable;
using testing::sentence;
using testing::simulate_search;
using testing::TableDecoder;

NextLogProbs table_of(const RandomTable& table, int64_t sentence) {
  return [=](const std::vector<int32_t>& history) { return table.log_probs(sentence, history); };
}

void expect_same(const std::vector<Hypothesis>& actual, const std::vector<Hypothesis>& wanted) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].tokens, wanted[i].tokens) << "hypothesis " << i;
    EXPECT_EQ(actual[i].token_scores, wanted[i].token_scores);
    EXPECT_DOUBLE_EQ(actual[i].log_probability, wanted[i].log_probability);
    EXPECT_DOUBLE_EQ(actual[i].score, wanted[i].score);
  }
}

/// A setting drawn from one number.
struct Setting {
  RandomTable table;
  DecodingOptions options;
  std::vector<SearchInput> inputs;
  std::vector<int32_t> excluded;
  int64_t max_steps = 1000;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + random_word(seed_, next_++) % (high - low + 1);
  }
  bool one_in(int64_t n) { return between(1, n) == 1; }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

Setting random_setting(uint64_t seed) {
  Dice dice(seed);
  Setting s;
  s.table.seed = seed;
  s.table.vocabulary = dice.between(5, 12);
  s.table.context = dice.between(0, 3);
  s.table.grid = dice.one_in(3) ? 0.5f : 0.0f;
  s.table.impossible = dice.one_in(4) ? 0.3 : 0.0;
  DecodingOptions& o = s.options;
  o.beam = dice.between(1, 6);
  o.n_best = dice.between(1, o.beam);
  o.length_penalty = 0.3 * static_cast<double>(dice.between(-1, 6));
  o.max_length_a = dice.one_in(2) ? 0.7 : 0.0;
  o.max_length_b = dice.between(0, 9);
  o.min_length = dice.between(0, 4);
  o.no_repeat_ngram = dice.one_in(2) ? dice.between(1, 3) : 0;
  o.unknown_penalty = dice.one_in(2) ? dice.between(-1, 3) : 0;
  if (dice.one_in(3))
    s.max_steps = dice.between(1, 6);
  if (dice.one_in(3))
    for (int64_t n = dice.between(1, 3); n > 0; --n)
      s.excluded.push_back(static_cast<int32_t>(s.table.vocabulary - n));
  const int64_t sentences = dice.between(1, 5);
  for (int64_t i = 0; i < sentences; ++i) {
    SearchInput& input = s.inputs.emplace_back();
    input.source_length = dice.between(1, 8);
    if (dice.one_in(2))
      for (int64_t n = dice.between(0, 5); n > 0; --n)
        input.prefix.push_back(
            static_cast<int32_t>(dice.between(dice.one_in(3) ? 2 : 3, s.table.vocabulary - 1)));
  }
  o.stepwise_length_penalty = dice.one_in(2);
  return s;
}

std::vector<std::vector<Hypothesis>> run(const Setting& s) {
  std::vector<int64_t> ids;
  for (size_t i = 0; i < s.inputs.size(); ++i)
    ids.push_back(static_cast<int64_t>(i));
  TableDecoder decoder(s.table, ids, s.max_steps);
  return search(decoder, s.inputs, s.options, s.excluded);
}

TEST(BeamSearch, AgreesWithAPlainSimulatorInAThousandSettings) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const Setting s = random_setting(seed);
    SCOPED_TRACE(concat("setting ", seed, " beam ", s.options.beam, " V ", s.table.vocabulary));
    const auto results = run(s);
    ASSERT_EQ(results.size(), s.inputs.size());
    for (size_t i = 0; i < results.size(); ++i)
      expect_same(
          results[i],
          simulate_search(
              table_of(s.table, static_cast<int64_t>(i)),
              s.inputs[i],
              s.options,
              s.max_steps,
              s.excluded));
    if (HasFailure())
      return;
  }
}

TEST(BeamSearch, TellsTokensThatTheBestHypothesisBeginsWith) {
  size_t told = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Setting s = random_setting(seed);
    std::vector<std::vector<int32_t>> shared(s.inputs.size());
    std::vector<int64_t> ids;
    for (size_t i = 0; i < s.inputs.size(); ++i)
      ids.push_back(static_cast<int64_t>(i));
    TableDecoder decoder(s.table, ids, s.max_steps);
    search(
        decoder,
        s.inputs,
        s.options,
        s.excluded,
        [&](size_t i, const std::vector<Hypothesis>& best) {
          const auto& tokens = best.front().tokens;
          ASSERT_LE(shared[i].size(), tokens.size());
          EXPECT_TRUE(std::equal(shared[i].begin(), shared[i].end(), tokens.begin())) << seed;
          // One hypothesis is certain of all that it has.
          if (s.options.beam == 1) {
            EXPECT_EQ(shared[i].size() + 1, tokens.size()) << seed;
          }
        },
        [&](size_t i, const std::vector<int32_t>& tokens) {
          EXPECT_GT(tokens.size(), shared[i].size());
          EXPECT_TRUE(std::equal(shared[i].begin(), shared[i].end(), tokens.begin()));
          shared[i] = tokens;
          ++told;
        });
  }
  EXPECT_GT(told, 300U);
}

TEST(BeamSearch, FindsEveryHypothesisWhenTheBeamIsWideEnough) {
  constexpr int64_t kVocabulary = 6, kMaxLength = 4;
  // 1 + 3 + 9 + 27 + 81 hypotheses; the widest step ranks 4 x 27 or 81 of them.
  constexpr int64_t kAll = 121;
  for (const double penalty : {0.0, 0.6, 1.0, 2.0}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const RandomTable table{.seed = seed, .vocabulary = kVocabulary};
      DecodingOptions options;
      options.stepwise_length_penalty = seed % 2 == 0;
      options.beam = kAll;
      options.n_best = kAll;
      options.length_penalty = penalty;
      options.max_length_b = kMaxLength;
      options.min_length = 0;
      TableDecoder decoder(table, {0});
      const auto result = search(decoder, {sentence(3)}, options)[0];
      const auto wanted =
          enumerate_hypotheses(table_of(table, 0), kVocabulary, kMaxLength, penalty);
      ASSERT_EQ(wanted.size(), static_cast<size_t>(kAll));
      expect_same(result, wanted);
    }
  }
}

TEST(BeamSearch, OfWidthOneIsTheArgmaxLoop) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const RandomTable table{.seed = seed, .vocabulary = 9, .context = 3};
    DecodingOptions options;
    options.beam = 1;
    options.max_length_b = 20;
    TableDecoder decoder(table, {7});
    const Hypothesis result = search(decoder, {sentence(3)}, options)[0][0];

    std::vector<int32_t> history = {2};
    double total = 0;
    do {
      auto row = table.log_probs(7, history);
      row[0] = row[1] = kMinusInfinity;
      if (history.size() == 1)
        row[2] = kMinusInfinity;  // the minimum length
      const auto best =
          history.size() == 21 ? row.begin() + 2 : std::max_element(row.begin(), row.end());
      total += *best;
      history.push_back(static_cast<int32_t>(best - row.begin()));
    } while (history.back() != 2);
    EXPECT_EQ(result.tokens, std::vector<int32_t>(history.begin() + 1, history.end()));
    EXPECT_NEAR(result.log_probability, total, 1e-12);
    EXPECT_NEAR(result.score, total / static_cast<double>(history.size() - 1), 1e-12);
  }
}

TEST(BeamSearch, GivesASentenceTheSameResultAloneAndInAnyBatch) {
  for (uint64_t seed = 2000; seed < 2100; ++seed) {
    Setting s = random_setting(seed);
    s.inputs.resize(4, sentence(5));
    s.options.n_best = s.options.beam;
    const auto together = run(s);
    std::vector<int64_t> reversed_ids = {3, 2, 1, 0};
    std::vector<SearchInput> reversed(s.inputs.rbegin(), s.inputs.rend());
    TableDecoder other(s.table, reversed_ids, s.max_steps);
    const auto backwards = search(other, reversed, s.options, s.excluded);
    for (int64_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(concat("setting ", seed, " sentence ", i));
      const size_t at = static_cast<size_t>(i);
      TableDecoder alone(s.table, {i}, s.max_steps);
      const auto single = search(alone, {s.inputs[at]}, s.options, s.excluded);
      expect_same(together[at], single[0]);
      expect_same(backwards[3 - at], single[0]);
    }
  }
}

TEST(BeamSearch, DropsTheRowsOfFinishedSentences) {
  const RandomTable table{.seed = 3, .vocabulary = 10};
  DecodingOptions options;
  options.beam = 3;
  options.max_length_a = 1;
  options.max_length_b = 0;
  TableDecoder decoder(table, {0, 1});
  search(decoder, {sentence(1), sentence(12)}, options);
  const auto& rows = decoder.rows_by_step();
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(rows[0], 2u);  // one row a sentence
  EXPECT_EQ(rows[1], 6u);
  EXPECT_EQ(rows[2], 3u);  // the first sentence was cut at one token
}

TEST(BeamSearch, CutsAtTheMaximumLengthWithTheTrueProbabilityOfTheEnd) {
  const RandomTable table{.seed = 5, .vocabulary = 40};
  DecodingOptions options;
  options.beam = 2;
  options.max_length_b = 3;
  options.min_length = 10;  // never reached: the maximum wins
  TableDecoder decoder(table, {0});
  const Hypothesis h = search(decoder, {sentence(9)}, options)[0][0];
  ASSERT_EQ(h.tokens.size(), 4u);
  EXPECT_EQ(h.tokens.back(), 2);
  std::vector<int32_t> history = {2, h.tokens[0], h.tokens[1], h.tokens[2]};
  EXPECT_EQ(h.token_scores.back(), table.log_probs(0, history)[2]);
  EXPECT_EQ(decoder.steps(), 4);
}

TEST(BeamSearch, NeverMakesMoreStepsThanTheDecoderCan) {
  const RandomTable table{.seed = 5, .vocabulary = 40};
  TableDecoder decoder(table, {0}, /*max_steps=*/4);
  const Hypothesis h = search(decoder, {sentence(9)}, {})[0][0];
  EXPECT_LE(h.tokens.size(), 4u);
  EXPECT_LE(decoder.steps(), 4);
}

TEST(BeamSearch, StartsWithTheForcedPrefixAndThenSpreads) {
  const RandomTable table{.seed = 11, .vocabulary = 12};
  DecodingOptions options;
  options.beam = 4;
  options.n_best = 4;
  options.unknown_penalty = 50;  // must not touch a forced <unk>
  TableDecoder decoder(table, {0});
  const std::vector<int32_t> prefix = {9, 3, 4};
  const auto result = search(decoder, {{.source_length = 4, .prefix = prefix}}, options)[0];
  EXPECT_EQ(decoder.rows_by_step()[2], 1u);  // one row while forcing
  EXPECT_EQ(decoder.rows_by_step()[4], 4u);
  ASSERT_EQ(result.size(), 4u);
  for (const Hypothesis& h : result) {
    EXPECT_EQ(std::vector<int32_t>(h.tokens.begin(), h.tokens.begin() + 3), prefix);
    const std::vector<int32_t> history = {2, 9};
    EXPECT_EQ(h.token_scores[1], table.log_probs(0, history)[3]);
  }
  for (size_t i = 1; i < 4; ++i)
    EXPECT_NE(result[i].tokens, result[0].tokens);
}

TEST(BeamSearch, EndsWhereThePrefixEnds) {
  const RandomTable table{.seed = 11, .vocabulary = 12};
  DecodingOptions options;
  options.n_best = 5;
  options.min_length = 6;  // gives way to the prefix
  TableDecoder decoder(table, {0});
  const auto result = search(decoder, {{.source_length = 4, .prefix = {9, 2, 7}}}, options)[0];
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].tokens, (std::vector<int32_t>{9, 2}));
}

TEST(BeamSearch, ReallyBlocksRepeatedNgrams) {
  for (int64_t n = 1; n <= 3; ++n) {
    // Without repetition of single words a long sentence needs many of them.
    const RandomTable table{.seed = 21, .vocabulary = n == 1 ? 40 : 7, .context = 1};
    DecodingOptions options;
    options.max_length_b = 30;
    options.min_length = 12;
    options.beam = 4;
    options.n_best = 4;
    options.no_repeat_ngram = n;
    TableDecoder decoder(table, {0});
    const auto result = search(decoder, {sentence(4)}, options)[0];
    ASSERT_EQ(result.size(), 4u);
    for (const Hypothesis& h : result) {
      std::vector<std::vector<int32_t>> seen;
      for (size_t i = 0; i + static_cast<size_t>(n) < h.tokens.size(); ++i) {
        const auto from = h.tokens.begin() + static_cast<std::ptrdiff_t>(i);
        const std::vector<int32_t> ngram(from, from + n);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), ngram), 0);
        seen.push_back(ngram);
      }
    }
  }
}

TEST(BeamSearch, NeverChoosesAnExcludedTokenNorGivesItsProbabilityAway) {
  const RandomTable table{.seed = 8, .vocabulary = 9};
  DecodingOptions options;
  options.beam = options.n_best = 300;
  options.max_length_b = 3;
  TableDecoder decoder(table, {0});
  const std::vector<int32_t> excluded = {6, 7, 8};
  const auto result = search(decoder, {sentence(4)}, options, excluded)[0];
  EXPECT_EQ(result.size(), 3u + 9u + 27u);  // words of 3, 4 and 5 alone
  for (const Hypothesis& h : result) {
    EXPECT_LT(*std::max_element(h.tokens.begin(), h.tokens.end()), 6);
    const std::vector<int32_t> history = {2};
    EXPECT_EQ(h.token_scores[0], table.log_probs(0, history)[static_cast<size_t>(h.tokens[0])]);
  }
}

TEST(BeamSearch, OfNoSentencesIsEmpty) {
  TableDecoder decoder(RandomTable{}, {});
  EXPECT_TRUE(search(decoder, {}, {}).empty());
}

}  // namespace
}  // namespace seqconv::internal
