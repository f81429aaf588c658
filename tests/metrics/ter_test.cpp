#include "metrics/ter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using Lines = std::vector<std::string>;

int64_t edits(
    const std::string& hypothesis, const std::string& reference, const TerOptions& options = {}) {
  return Ter(options).count(hypothesis, {reference}).edits;
}

TEST(Ter, CountsInsertedDeletedAndReplacedWords) {
  EXPECT_EQ(edits("a b c", "a b c"), 0);
  EXPECT_EQ(edits("a c", "a b c"), 1);
  EXPECT_EQ(edits("a b b c", "a b c"), 1);
  EXPECT_EQ(edits("a x c", "a b c"), 1);
  EXPECT_EQ(edits("", "a b c"), 3);
  EXPECT_EQ(edits("a b c", ""), 3);
  EXPECT_EQ(edits("", ""), 0);
}

TEST(Ter, ARunOfWordsThatMovesIsOneEdit) {
  EXPECT_EQ(edits("d e f a b c", "a b c d e f"), 1);
  EXPECT_EQ(edits("a d b c", "a b c d"), 1);
  EXPECT_EQ(edits("g a b c d x f", "a b c d e f g"), 2);
  // Letter by letter it is ten replacements.
  EXPECT_EQ(edits("6 7 8 9 0 1 2 3 4 5", "1 2 3 4 5 6 7 8 9 0"), 1);
}

std::string count_up(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i)
    text += std::to_string(i) + " ";
  return text;
}

TEST(Ter, NothingMovesFurtherThan50WordsAndNoRunLongerThan10) {
  const std::string behind = count_up(100, 149);
  EXPECT_EQ(edits("1 " + behind, behind + "1"), 1);
  // One word further it is deleted and inserted.
  EXPECT_EQ(edits("1 " + behind + "x", behind + "x 1"), 2);
  EXPECT_EQ(edits(count_up(1, 10) + behind, behind + count_up(1, 10)), 1);
  EXPECT_EQ(edits(count_up(1, 11) + behind, behind + count_up(1, 11)), 3);
}

TEST(Ter, IsOfAHundredWordsOfTheReference) {
  Ter ter;
  ter.add("a x", {"a b c d"});
  EXPECT_EQ(ter.score(), 75);
  ter.add("a b", {"a b"});
  EXPECT_EQ(ter.score(), 50);
  EXPECT_EQ(ter.statistics().edits, 3);
  EXPECT_EQ(ter.statistics().reference_length, 6);
  EXPECT_EQ(Ter().score(), 0);
  EXPECT_EQ(corpus_ter({"a"}, {{""}}).score(), 100);
  EXPECT_EQ(corpus_ter({""}, {{""}}).score(), 0);
  EXPECT_EQ(corpus_ter({"a b c d"}, {{"x"}}).score(), 400);
}

TEST(Ter, TakesTheNearestReferenceAndTheMeanLength) {
  const TerStatistics statistics = Ter().count("a b c", {"x y", "a b", "a"});
  EXPECT_EQ(statistics.edits, 1);
  EXPECT_DOUBLE_EQ(statistics.reference_length, 5.0 / 3);
  EXPECT_THAT(statistics.numbers(), ElementsAre(1, 5.0 / 3));
}

TEST(TerWords, AreLowerCasedUnlessAskedNotTo) {
  EXPECT_EQ(edits("ÄB", "äb"), 0);
  EXPECT_EQ(edits("ÄB", "äb", {.case_sensitive = true}), 1);
}

TEST(TerWords, AreSetApartWhenNormalized) {
  const TerOptions normalized{.normalized = true};
  const auto equal = [&](const char* line, const char* words) {
    return edits(line, words, {.case_sensitive = true}) > 0 && edits(line, words, normalized) == 0;
  };
  EXPECT_TRUE(equal("(a,b)!", "( a , b ) !"));
  EXPECT_TRUE(equal("the dog's tail", "the dog 's tail"));
  EXPECT_TRUE(equal("&quot;a&amp;b&quot; 1,5.", "\" a & b \" 1,5 ."));
  EXPECT_TRUE(equal("3-4 a-b", "3 - 4 a-b"));
  EXPECT_EQ(edits("漢字。", "漢 字 。", normalized), 3);
  EXPECT_EQ(edits("漢字。x", "漢 字 。 x", {.normalized = true, .asian_support = true}), 0);
}

TEST(TerWords, OfReferencesAreNormalizedTwiceAsInSacreBleu) {
  const TerOptions options{.normalized = true, .no_punct = true};
  EXPECT_EQ(Ter(options).count("1990's.", {"x"}).edits, 1);
  EXPECT_EQ(Ter(options).count("x", {"1990's."}).reference_length, 2);
}

TEST(TerWords, LosePunctuationWhereAsked) {
  EXPECT_EQ(edits("(a), b: c-d?", "a b c-d", {.no_punct = true}), 0);
  EXPECT_EQ(edits("漢、字。", "漢字", {.no_punct = true}), 1);
  EXPECT_EQ(edits("漢、字。", "漢字", {.no_punct = true, .asian_support = true}), 0);
}

TEST(Ter, SaysHowItCameAbout) {
  Ter ter({.normalized = true, .no_punct = true});
  ter.add("a b c", {"a b", "a b d"});
  EXPECT_EQ(
      ter.report(),
      "TER|nrefs:2|case:lc|tok:tercom|norm:yes|punct:no|asian:no|version:seqconv-0.1.0 = 40.00");
  EXPECT_EQ(
      Ter({.case_sensitive = true}).signature(),
      "nrefs:0|case:mixed|tok:tercom|norm:no|punct:yes|asian:no|version:seqconv-0.1.0");
}

TEST(Ter, RefusesWhatItCannotScore) {
  EXPECT_EQ(
      TerOptions{.asian_support = true}.idle_options(),
      "ter.asian_support has no effect without ter.normalized or ter.no_punct");
  EXPECT_EQ((TerOptions{.no_punct = true, .asian_support = true}.idle_options()), "");
  EXPECT_EQ(
      error_of([] { Ter().add("a", {}); }), "a score needs at least one reference, but got 0");
}

TEST(Ter, OfAnyBytesIsANumber) {
  std::mt19937 random(3);
  const TerOptions options{.normalized = true, .no_punct = true, .asian_support = true};
  for (int round = 0; round < 300; ++round) {
    std::string a;
    std::string b;
    for (size_t i = random() % 60; i > 0; --i)
      (random() % 2 ? a : b) +=
          static_cast<char>(random() % 3 ? " ab.'\xE3\x80\x82"[random() % 8] : random());
    const TerStatistics statistics = Ter(options).count(a, {b});
    EXPECT_GE(statistics.edits, 0);
    EXPECT_LE(statistics.edits, 60);
  }
}

TEST(Ter, OfVeryLongLinesEndsSoon) {
  std::string same;
  std::string other;
  for (int i = 0; i < 20000; ++i) {
    same += "a ";
    other += std::to_string(i % 7) + " ";
  }
  EXPECT_EQ(edits(same, same), 0);
  EXPECT_EQ(edits(same, other), 20000);
  EXPECT_EQ(edits("a", same), 19999);
  EXPECT_EQ(edits(same, "a"), 19999);
}

}  // namespace
}  // namespace seqconv::internal
