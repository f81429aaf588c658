#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "search/search.h"
#include "search/table_decoder.h"

namespace seqconv::internal {
namespace {

using testing::kMinusInfinity;
using testing::RandomTable;
using testing::sentence;
using testing::TableDecoder;

/// Every row has the same scores.
class ConstantDecoder : public TableDecoder {
 public:
  explicit ConstantDecoder(std::vector<float> scores)
      : TableDecoder({.vocabulary = static_cast<int64_t>(scores.size())}, {0}),
        scores_(std::move(scores)) {}

 private:
  std::vector<float> scores(const Row&) const override { return scores_; }
  std::vector<float> scores_;
};

void expect_given_up(StepDecoder& decoder, const std::vector<int32_t>& tokens) {
  const auto result = search(decoder, {sentence(4)}, {})[0];
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].tokens, tokens);
  EXPECT_EQ(result[0].token_scores.back(), kMinusInfinity);
  EXPECT_EQ(result[0].score, -std::numeric_limits<double>::infinity());
}

TEST(DegenerateDecoder, WithoutAnyCandidateEndsAtOnce) {
  ConstantDecoder impossible(std::vector<float>(8, kMinusInfinity));
  expect_given_up(impossible, {2});
}

TEST(DegenerateDecoder, WithNanScoresEndsAtOnce) {
  ConstantDecoder broken(std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()));
  expect_given_up(broken, {2});
}

TEST(DegenerateDecoder, WithNothingButTheEndGivesItsBannedEndUp) {
  ConstantDecoder tiny({0, 0, -1.0f});
  expect_given_up(tiny, {2});
  DecodingOptions options;
  options.min_length = 0;
  ConstantDecoder again({0, 0, -1.0f});
  const auto result = search(again, {sentence(4)}, options)[0];
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].tokens, std::vector<int32_t>{2});
  EXPECT_DOUBLE_EQ(result[0].score, -1.0);
}

TEST(DegenerateDecoder, ThatCanNeverEndIsCutWithAnImpossibleEnd) {
  ConstantDecoder endless({0, 0, kMinusInfinity, -5.0f, -1.0f});
  DecodingOptions options;
  options.max_length_b = 3;
  const auto result = search(endless, {sentence(4)}, options)[0];
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].tokens, (std::vector<int32_t>{4, 4, 4, 2}));
  EXPECT_EQ(result[0].token_scores.back(), kMinusInfinity);
}

TEST(DegenerateDecoder, WithEqualScoresPrefersLowerRowsThenLowerTokens) {
  ConstantDecoder flat(std::vector<float>(6, -1.0f));
  DecodingOptions options;
  options.beam = 2;
  options.n_best = 2;
  const auto result = search(flat, {sentence(4)}, options)[0];
  // Step 0: 3, 4 live. Step 1: the first row's </s>, 3, 4, 5 fill the ranks.
  // Step 2: again the first row's </s> comes first.
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].tokens, (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(result[1].tokens, (std::vector<int32_t>{3, 3, 2}));
}

/// Gives whatever candidates it was told to.
class ScriptedDecoder : public StepDecoder {
 public:
  explicit ScriptedDecoder(std::vector<std::vector<Candidate>> rows) : rows_(std::move(rows)) {}
  int64_t sentences() const override { return 1; }
  int64_t vocabulary_size() const override { return 8; }
  int64_t max_steps() const override { return 100; }
  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t>,
      std::span<const int32_t>,
      const StepConstraints&,
      int64_t) override {
    return rows_;
  }

 private:
  std::vector<std::vector<Candidate>> rows_;
};

template <class Function>
void expect_error(Function&& function, const std::string& message) {
  try {
    function();
    ADD_FAILURE() << "no error, but wanted: " << message;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(message));
  }
}

TEST(SearchErrors, NameWhatTheDecoderDidWrong) {
  ScriptedDecoder two_rows({{}, {}});
  expect_error(
      [&] { search(two_rows, {{}}, {}); },
      "the decoder must give candidates for 1 rows, but gave 2");
  ScriptedDecoder outside({{{.token = 8, .score = -1.0f}}});
  expect_error(
      [&] { search(outside, {{}}, {}); },
      "a candidate must be below the vocabulary size 8, but the decoder gave 8");
}

TEST(SearchErrors, NameInputsThatDoNotFit) {
  TableDecoder decoder(RandomTable{}, {0, 1});
  expect_error(
      [&] { search(decoder, {{}}, {}); },
      "search needs an input for each of the decoder's 2 sentences, but got 1");
  expect_error(
      [&] {
        search(decoder, {{}, sentence(-1)}, {});
      },
      "the source length must be at least 0, but got -1 for sentence 1");
  expect_error(
      [&] {
        search(decoder, {{}, {.prefix = {4, 8}}}, {});
      },
      "prefix tokens must be between 2 and 7 (no <s>, no <pad>), but got 8 at position 1 of "
      "sentence 1");
  TableDecoder no_end(RandomTable{.vocabulary = 2}, {0});
  expect_error(
      [&] { search(no_end, {{}}, {}); },
      "the vocabulary must hold </s> (at least 3 ids), but it has 2");
  TableDecoder no_steps(RandomTable{}, {0}, /*max_steps=*/0);
  expect_error(
      [&] { search(no_steps, {{}}, {}); },
      "the decoder must be able to make a step, but its limit is 0");
}

TEST(SearchErrors, NameTheOptionAndItsRange) {
  const auto wanted = [](auto change, const std::string& message) {
    DecodingOptions options;
    change(options);
    try {
      options.validate("decoding");
      ADD_FAILURE() << "no error, but wanted: " << message;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()), message);
    }
  };
  using O = DecodingOptions;
  wanted([](O& o) { o.beam = 0; }, "decoding.beam must be between 1 and 1000000, but got 0");
  wanted(
      [](O& o) { o.n_best = 6; }, "decoding.n_best must be between 1 and the beam (5), but got 6");
  wanted(
      [](O& o) { o.n_best = 0; }, "decoding.n_best must be between 1 and the beam (5), but got 0");
  wanted(
      [](O& o) { o.length_penalty = std::nan(""); },
      "decoding.length_penalty must be between -50 and 50, but got nan");
  wanted(
      [](O& o) { o.max_length_a = -0.5; },
      "decoding.max_length_a must be between 0 and 1000, but got -0.5");
  wanted(
      [](O& o) { o.max_length_b = -1; },
      "decoding.max_length_b must be between 0 and 1000000, but got -1");
  wanted(
      [](O& o) { o.min_length = -1; },
      "decoding.min_length must be between 0 and 1000000, but got -1");
  wanted(
      [](O& o) { o.min_length = int64_t{1} << 40; },
      "decoding.min_length must be between 0 and 1000000, but got 1099511627776");
  wanted(
      [](O& o) { o.no_repeat_ngram = -2; },
      "decoding.no_repeat_ngram must be between 0 and 1000000, but got -2");
  wanted(
      [](O& o) { o.unknown_penalty = HUGE_VAL; },
      "decoding.unknown_penalty must be between -1e+30 and 1e+30, but got inf");
  wanted(
      [](O& o) { o.unknown_penalty = 1e39; },
      "decoding.unknown_penalty must be between -1e+30 and 1e+30, but got 1e+39");
  wanted(
      [](O& o) { o.length_penalty = -1e300; },
      "decoding.length_penalty must be between -50 and 50, but got -1e+300");
  EXPECT_NO_THROW(DecodingOptions().validate("decoding"));
}

TEST(SearchErrors, NameBothOptionsOfAContradiction) {
  DecodingOptions options;
  options.min_length = 10;
  options.max_length_b = 5;
  const OptionNames flags(
      {{"min_length", "--min-length"},
       {"max_length_a", "--max-length-a"},
       {"max_length_b", "--max-length-b"}});
  for (const auto& [names, message] :
       {std::pair<OptionNames, std::string>{
            "decoding",
            "decoding.min_length must be at most decoding.max_length_b (5) where "
            "decoding.max_length_a is 0, but got 10"},
        {flags,
         "--min-length must be at most --max-length-b (5) where --max-length-a is 0, but got "
         "10"}}) {
    try {
      options.validate(names);
      ADD_FAILURE() << "no error, but wanted: " << message;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()), message);
    }
  }
  options.max_length_a = 0.1;  // long sources have long translations
  EXPECT_NO_THROW(options.validate("decoding"));
  EXPECT_NO_THROW(DecodingOptions{.max_length_b = 0}.validate("decoding"));
}

}  // namespace
}  // namespace seqconv::internal
