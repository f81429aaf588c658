#include "search/sampled_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/special_ids.h"
#include "search/table_decoder.h"

/// Translations that are drawn, against the probabilities of the table.
namespace seqconv::internal {
namespace {

using testing::RandomTable;
using testing::TableDecoder;
using Tokens = std::vector<int32_t>;

SampledInput input_of(uint64_t seed, Tokens prefix = {}) {
  return {.sentence = {.source_length = 3, .prefix = std::move(prefix)}, .seed = seed};
}

/// The exact probability of every translation of sentence 0.
class Exact {
 public:
  Exact(const RandomTable& table, const DecodingOptions& options, double heat)
      : table_(table), options_(options), temperature_(heat) {
    grow({}, 1);
  }
  const std::map<Tokens, double>& probabilities() const { return found_; }

 private:
  void grow(const Tokens& tokens, double probability) {
    const auto length = static_cast<int64_t>(tokens.size());
    if (length == options_.max_length_b)
      return add(tokens, probability);
    Tokens history = {kEndId};
    history.insert(history.end(), tokens.begin(), tokens.end());
    const std::vector<float> scores = table_.log_probs(0, history);
    double total = 0;
    std::vector<double> weights(scores.size(), 0.0);
    for (size_t i = kEndId; i < scores.size(); ++i) {
      if (i == kEndId && length < options_.min_length)
        continue;
      weights[i] = std::exp(scores[i] / temperature_);
      total += weights[i];
    }
    for (size_t i = kEndId; i < scores.size(); ++i) {
      const double own = probability * weights[i] / total;
      Tokens longer = tokens;
      longer.push_back(static_cast<int32_t>(i));
      if (i != kEndId)
        grow(longer, own);
      else if (own > 0)
        add(tokens, own);
    }
  }

  void add(Tokens tokens, double probability) {
    tokens.push_back(kEndId);
    found_[tokens] += probability;
  }

  RandomTable table_;
  DecodingOptions options_;
  double temperature_;
  std::map<Tokens, double> found_;
};

TEST(SampledSearch, DrawsWhatIsProbableAsOftenAsItIs) {
  const RandomTable table{.vocabulary = 5};
  DecodingOptions options;
  options.max_length_b = 3;
  options.min_length = 1;
  options.n_best = 4;
  for (const double temperature : {1.0, 0.5}) {
    constexpr int kBatches = 50, kSentences = 100;
    std::map<Tokens, int> drawn;
    for (int batch = 0; batch < kBatches; ++batch) {
      TableDecoder decoder(table, std::vector<int64_t>(kSentences, 0));
      std::vector<SampledInput> inputs;
      for (int i = 0; i < kSentences; ++i)
        inputs.push_back(input_of(static_cast<uint64_t>(batch * kSentences + i)));
      for (const auto& sentence :
           sampled_search(decoder, inputs, options, {.temperature = temperature}))
        for (const Hypothesis& hypothesis : sentence)
          ++drawn[hypothesis.tokens];
    }
    constexpr double kDraws = 4.0 * kBatches * kSentences;
    const Exact exact(table, options, temperature);
    double total = 0;
    for (const auto& [tokens, probability] : exact.probabilities()) {
      const double spread = std::sqrt(kDraws * probability * (1 - probability)) + 1;
      EXPECT_NEAR(drawn[tokens], kDraws * probability, 5 * spread);
      total += drawn[tokens];
    }
    EXPECT_EQ(total, kDraws);
  }
}

TEST(SampledSearch, GivesASentenceTheSameWhateverIsBesideIt) {
  const RandomTable table{.vocabulary = 30};
  DecodingOptions options;
  options.max_length_b = 12;
  options.n_best = 3;
  const std::vector<int64_t> sentences = {0, 7, 3, 7};
  const std::vector<SampledInput> inputs = {
      input_of(11), input_of(12), input_of(13, {5, 6}), input_of(14)};
  TableDecoder together(table, sentences);
  const auto all = sampled_search(together, inputs, options, {});
  for (size_t i = 0; i < inputs.size(); ++i) {
    TableDecoder alone(table, {sentences[i]});
    const auto own = sampled_search(alone, {inputs[i]}, options, {});
    ASSERT_EQ(own[0].size(), 3U);
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_EQ(own[0][n].tokens, all[i][n].tokens);
      EXPECT_EQ(own[0][n].token_scores, all[i][n].token_scores);
      EXPECT_LE(all[i][n].score, all[i][0].score);
    }
  }
  EXPECT_NE(all[1][0].tokens, all[3][0].tokens) << "other seeds, other draws";
}

TEST(SampledSearch, IsGreedyWithoutHeat) {
  const RandomTable table{.vocabulary = 12};
  DecodingOptions options;
  options.beam = 1;
  options.max_length_b = 10;
  options.no_repeat_ngram = 2;
  options.unknown_penalty = 1.5;
  const std::vector<int32_t> excluded = {6, 9};
  for (int64_t sentence = 0; sentence < 20; ++sentence) {
    TableDecoder searched(table, {sentence}), drawn(table, {sentence});
    const auto best = search(searched, {{.source_length = 3}}, options, excluded);
    const auto sampled =
        sampled_search(drawn, {input_of(1)}, options, {.temperature = 0}, excluded);
    EXPECT_EQ(sampled[0][0].tokens, best[0][0].tokens);
    EXPECT_EQ(sampled[0][0].token_scores, best[0][0].token_scores);
    EXPECT_DOUBLE_EQ(sampled[0][0].score, best[0][0].score);
  }
}

TEST(SampledSearch, KeepsToPrefixLengthsAndExclusions) {
  const RandomTable table{.vocabulary = 10};
  DecodingOptions options;
  options.min_length = 4;
  options.max_length_b = 6;
  options.no_repeat_ngram = 1;
  const std::vector<int32_t> excluded = {4};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    TableDecoder decoder(table, {0});
    const auto drawn =
        sampled_search(decoder, {input_of(seed, {5, 7})}, options, {.top_k = 3}, excluded);
    const Tokens& tokens = drawn[0][0].tokens;
    ASSERT_GE(tokens.size(), 5U);
    EXPECT_LE(tokens.size(), 7U);
    EXPECT_EQ(tokens[0], 5);
    EXPECT_EQ(tokens[1], 7);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_NE(tokens[i], 4);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), tokens[i]), 1);
    }
  }
}

/// Notes what it is asked for.
class NotingDecoder : public TableDecoder {
 public:
  using TableDecoder::TableDecoder;

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    asked.insert({constraints.each_row != nullptr, count});
    return TableDecoder::advance(parents, tokens, constraints, count);
  }

  std::set<std::pair<bool, int64_t>> asked;
};

TEST(SampledSearch, AsksForCandidatesWhereTheyAreEnough) {
  DecodingOptions options;
  options.max_length_b = 12;
  options.min_length = 3;
  options.no_repeat_ngram = 1;
  options.n_best = 3;
  DecodingOptions whole = options;
  whole.unknown_penalty = 1e-30;  // changes no number
  const std::vector<int32_t> excluded = {6, 9};
  const std::vector<std::pair<SamplingOptions, int64_t>> cases = {
      {{.temperature = 0}, 1},
      {{.temperature = 0, .ban_unknown = true}, 2},
      {{.top_k = 1}, 1},
      {{.temperature = 0.7, .top_k = 4}, 4},
      {{.top_k = 3, .top_p = 0.6, .ban_unknown = true}, 4},
      {{.top_k = 1'000'000'000'000, .ban_unknown = true}, 26}};
  for (const auto& [sampling, count] : cases)
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const RandomTable table{
          .seed = seed,
          .vocabulary = 25,
          .grid = seed % 2 == 0 ? 0.5F : 0.0F,
          .impossible = seed % 3 == 0 ? 0.3 : 0.0};
      const std::vector<SampledInput> inputs = {input_of(seed, {3, 7}), input_of(seed + 1)};
      NotingDecoder some(table, {0, 4}), all(table, {0, 4});
      const auto found = sampled_search(some, inputs, options, sampling, excluded);
      const auto wanted = sampled_search(all, inputs, whole, sampling, excluded);
      EXPECT_EQ(some.asked, (decltype(some.asked){{false, count}}));
      EXPECT_EQ(all.asked, (decltype(all.asked){{true, 1}}));
      for (size_t i = 0; i < wanted.size(); ++i)
        for (size_t n = 0; n < wanted[i].size(); ++n) {
          EXPECT_EQ(found[i].at(n).tokens, wanted[i][n].tokens);
          EXPECT_EQ(found[i].at(n).token_scores, wanted[i][n].token_scores);
        }
    }
}

TEST(SampledSearch, RefusesWhatMakesNoSense) {
  TableDecoder decoder(RandomTable{}, {0});
  EXPECT_THROW(sampled_search(decoder, {input_of(1)}, {}, {.top_p = 0}), UsageError);
  EXPECT_THROW(sampled_search(decoder, {}, {}, {}), Error);
}

}  // namespace
}  // namespace seqconv::internal
