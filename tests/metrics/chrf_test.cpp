#include "metrics/chrf.h"

#include <gtest/gtest.h>

#include <random>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using Lines = std::vector<std::string>;

double chrf(
    const std::string& hypothesis, const Lines& references, const ChrfOptions& options = {}) {
  Chrf metric(options);
  metric.add(hypothesis, references);
  return metric.score();
}

TEST(Chrf, OfEqualTextIs100AndOfStrangeTextZero) {
  EXPECT_NEAR(chrf("Ein Hund läuft", {"Ein Hund läuft"}), 100, 1e-9);
  EXPECT_EQ(chrf("abc", {"xyz"}), 0);
  EXPECT_EQ(chrf("", {"xyz"}), 0);
  EXPECT_EQ(chrf("abc", {""}), 0);
  EXPECT_EQ(chrf("", {""}), 0);
  EXPECT_EQ(Chrf().score(), 0);
}

TEST(Chrf, FollowsTheDefinition) {
  // Orders 1 and 2 of "abc" against "abd": 2 of 3 and 1 of 2.
  ChrfOptions options;
  options.char_order = 2;
  const double mean = (2.0 / 3 + 1.0 / 2) / 2;
  EXPECT_NEAR(chrf("abc", {"abd"}, options), 100 * mean, 1e-9);
  // Recall weighs beta^2 times: "ab" against "abcd", order 1.
  options.char_order = 1;
  EXPECT_NEAR(chrf("ab", {"abcd"}, options), 100 * 5 * 1 * 0.5 / (4 * 1 + 0.5), 1e-9);
}

TEST(Chrf, LeavesOutWhiteSpaceUnlessAsked) {
  EXPECT_NEAR(
      chrf(
          "a b\xC2\xA0"
          "c",
          {"abc"}),
      100,
      1e-9);
  ChrfOptions options;
  options.whitespace = true;
  EXPECT_LT(chrf("a b c", {"abc"}, options), 100);
}

TEST(Chrf, TakesTheBestReferenceOfEachSentence) {
  EXPECT_NEAR(chrf("abc", {"xyz", "abc"}), 100, 1e-9);
}

TEST(Chrf, CountsWordsWithPunctuationSplitOff) {
  ChrfOptions options;
  options.word_order = 2;
  // The number is what sacreBLEU 2.6.0 gives.
  Chrf metric(options);
  metric.add("(hi) there!", {"hi) there ."});
  EXPECT_EQ(
      metric.report(),
      "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:seqconv-0.1.0 = 71.05");
}

TEST(Chrf, LowerCasesWhenAsked) {
  ChrfOptions options;
  options.lowercase = true;
  EXPECT_NEAR(chrf("ÄBC", {"äbc"}, options), 100, 1e-9);
}

TEST(Chrf, TakesAnyBytes) {
  std::mt19937 random(19);
  ChrfOptions options;
  options.word_order = 4;
  for (int round = 0; round < 500; ++round) {
    std::string a;
    std::string b;
    for (int i = 0; i < 40; ++i) {
      a += static_cast<char>(random());
      b += static_cast<char>(random());
    }
    const double score = chrf(a, {b, a}, options);
    EXPECT_NEAR(score, 100, 1e-9);
  }
}

TEST(Chrf, ErrorsSayWhatWasWanted) {
  EXPECT_EQ(
      error_of([] {
        corpus_chrf({"a", "b"}, {{"a"}});
      }),
      "hypotheses and references must have the same number of lines, but got 2 hypotheses and 1 "
      "lines in reference 1");
  ChrfOptions options;
  options.char_order = 7;
  EXPECT_EQ(
      error_of<UsageError>([&] { Chrf metric(options); }),
      "chrf.char_order must be from 1 to 6, but got 7");
  options = {};
  options.word_order = -1;
  EXPECT_EQ(
      error_of<UsageError>([&] { Chrf metric(options); }),
      "chrf.word_order must be from 0 to 4, but got -1");
  EXPECT_EQ(
      error_of([] { Chrf().add("a", {}); }), "a score needs at least one reference, but got 0");
}

}  // namespace
}  // namespace seqconv::internal
