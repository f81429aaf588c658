#include "text/token_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "base/stopwatch.h"
#include "base/utf8.h"
#include "support/temporary_folder.h"
#include "text/learning/sentencepiece_trainer.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;

/// The bytes of each token.
std::vector<std::string> cut(const std::string& text, const std::vector<ByteRange>& ranges) {
  std::vector<std::string> parts;
  for (const ByteRange& range : ranges)
    parts.push_back(text.substr(
        static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin)));
  return parts;
}

std::vector<std::string> find(const std::string& text, const std::vector<std::string>& surfaces) {
  return cut(text, find_ranges(text, surfaces));
}

TEST(TokenRanges, AreThoseOfTheSameCharacters) {
  EXPECT_THAT(find(" Das  Haus.", {"Das", "Ha", "us", "."}), ElementsAre("Das", "Ha", "us", "."));
  EXPECT_THAT(find("zwei", {"", "zw", "", "ei", ""}), ElementsAre("", "zw", "", "ei", ""));
  EXPECT_THAT(find("", {"a", "b"}), ElementsAre("", ""));
  EXPECT_THAT(find("a b", {}), ElementsAre());
}

TEST(TokenRanges, DoNotHeedCaseAndCompatibleForms) {
  EXPECT_THAT(find("GRÖSSE Ⅷ", {"größe", "viii"}), ElementsAre("GRÖSSE", "Ⅷ"));
  EXPECT_THAT(find("ﬁx ½ km²", {"fi", "x", "1⁄2", "km2"}), ElementsAre("ﬁ", "x", "½", "km²"));
  // Composed on one side, decomposed on the other.
  EXPECT_THAT(find("cafe\u0301 a", {"café", "a"}), ElementsAre("cafe\u0301", "a"));
  EXPECT_THAT(find("東京タワー", {"東京", "ﾀﾜｰ"}), ElementsAre("東京", "タワー"));
}

TEST(TokenRanges, BytesOfACharacterHaveAllOfIt) {
  EXPECT_THAT(find("aéb", {"a", "\xC3", "\xA9", "b"}), ElementsAre("a", "é", "é", "b"));
}

TEST(TokenRanges, LieBetweenTheirNeighboursWhereCharactersDiffer) {
  EXPECT_THAT(
      find("the Xylofon plays", {"the", "<unk>", "plays"}), ElementsAre("the", "Xylofon", "plays"));
  EXPECT_THAT(find("don't", {"don", "&apos;t"}), ElementsAre("don", "'t"));
  EXPECT_THAT(find("a b c", {"a", "c"}), ElementsAre("a", "c"));
  EXPECT_THAT(find("a c", {"a", "b", "c"}), ElementsAre("a", "", "c"));
  const std::string other(500, 'x'), text(300, 'y');
  for (const ByteRange& range : find_ranges(text, {other, other})) {
    EXPECT_LE(range.begin, range.end);
    EXPECT_LE(range.end, 300);
  }
}

/// A text so many times.
std::string times(size_t count, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < count; ++i)
    all += text;
  return all;
}

/// Characters that normalisations drop: zero width spaces, marks and controls.
const std::vector<std::string> kDropped = {
    "\u200B", "\u0301", "\u0327", "\uFEFF", "\x01", "\x7F", "\u0080", "\u00AD"};

TEST(TokenRanges, PassOverLongRunsOfDroppedCharacters) {
  const std::vector<std::string> words = {"Das", "alte", "Haus", "steht", "."};
  for (const std::string& c : kDropped)
    for (const size_t count : {1, 63, 64, 65, 70, 1'000}) {
      SCOPED_TRACE(::testing::PrintToString(c) + " x " + std::to_string(count));
      const std::string run = times(count, c);
      // Their values would be long to print.
      EXPECT_TRUE(find("Das " + run + " alte Haus steht.", words) == words);
      EXPECT_TRUE(find(run + "Das alte Haus steht.", words) == words);
      EXPECT_TRUE(find("Das alte Haus steht." + run, words) == words);
      EXPECT_TRUE(find("Das " + run + " alte " + run + " Haus steht.", words) == words);
      const auto inside = find("Das al" + run + "te Haus steht.", words);
      EXPECT_TRUE(inside[1] == "al" + run + "te");
      EXPECT_THAT(std::span(inside).subspan(2), ElementsAre("Haus", "steht", "."));
    }
}

TEST(TokenRanges, PassOverLongWordsThatWereDropped) {
  const std::vector<std::string> words = {"Das", "alte", "Haus", "steht", "."};
  for (const size_t count : {65, 1'000}) {
    const std::string run = times(count, "ж");
    EXPECT_TRUE(find("Das " + run + " alte Haus steht.", words) == words);
    EXPECT_TRUE(find(run + "Das alte Haus steht.", words) == words);
    EXPECT_TRUE(find("Das alte Haus steht." + run, words) == words);
    EXPECT_TRUE(find("Das alte " + run + " Haus " + run + " steht.", words)[1] == "alte");
    EXPECT_TRUE(find("Das alte " + run + " Haus " + run + " steht.", words)[3] == "steht");
  }
}

TEST(TokenRanges, PassOverRunsBetweenAllCharacters) {
  for (const size_t count : {1, 2, 30, 70}) {
    const std::string run = times(count, "\u200B");
    EXPECT_THAT(
        find("d" + run + "a" + run + "s " + run + "H" + run + "s" + run, {"das", "H", "s"}),
        ElementsAre("d" + run + "a" + run + "s", "H", "s"));
  }
}

TEST(TokenRanges, LieBehindLongWordsThatTheTokensLack) {
  const std::string word = times(50, "xyz");
  EXPECT_THAT(
      find("the " + word + " plays well, the cat does too", {"the", "<unk>", "plays", "well"}),
      ElementsAre("the", word, "plays", "well"));
  EXPECT_THAT(
      find("the " + word + " cat", {"the", "<unk>", "cat"}), ElementsAre("the", word, "cat"));
  // Marks alone may be a token that is not known.
  const std::string marks = times(70, "\u0301");
  EXPECT_THAT(find("a " + marks + " b", {"a", "<unk>", "b"}), ElementsAre("a", marks, "b"));
  EXPECT_THAT(find("a " + marks, {"a", "<unk>"}), ElementsAre("a", marks));
  // Tokens may have what the text lacks.
  const std::string lacking = times(20, "<unk>");
  EXPECT_THAT(find("a house", {"a", lacking, "house"}), ElementsAre("a", "", "house"));
}

/// Texts that differ all along, each in its own way.
TEST(TokenRanges, TakeTimeInProportionToTheText) {
  constexpr size_t kCharacters = 160'000;
  const auto long_text = [](std::string_view part) {
    return times(kCharacters / decode_utf8(part).size(), part);
  };
  const std::string run = times(70, "\u200B");
  for (const auto& [text, token] :
       {std::pair(long_text("\u200B"), std::string("ab")),
        std::pair(long_text("a\u200B"), long_text("a")),
        std::pair(long_text("ab" + run), long_text("ab")),
        std::pair(long_text("a"), long_text("b")),
        std::pair(long_text("a\u0301"), long_text("ba")),
        std::pair(long_text("\u200B"), long_text("a\u200B")),
        std::pair(long_text("abcdefg" + times(65, "x")), long_text("abcdefg" + times(65, "y"))),
        std::pair(long_text("abcdef"), long_text("fedcba"))}) {
    Stopwatch watch;
    const auto ranges = find_ranges(text, {token, "z"});
    EXPECT_LT(watch.lap(), 5) << text.substr(0, 20);
    EXPECT_EQ(ranges.size(), 2U);
  }
}

TEST(TokenRanges, AreInOrderForAnything) {
  for (const char* text : {"\xFF\xFE", "a\x80z", "\xE2\x82", "\0"})
    for (const ByteRange& range : find_ranges(text, {"\xE2", "a", "\x80", ""})) {
      EXPECT_LE(0, range.begin);
      EXPECT_LE(range.begin, range.end);
      EXPECT_LE(range.end, std::ssize(std::string(text)));
    }
}

/// Ranges of a line through each kind of subwords.
class PipelineRanges : public ::testing::Test {
 protected:
  /// The bytes of the line that are in no range, blanks left out; the ranges must be in
  /// order.
  std::string left_out(const TextOptions& options, const std::string& line) {
    const auto text = TranslationText::create(options, {file_}, {file_});
    std::string rest = line;
    ByteRange last;
    for (const ByteRange& range : text.source->find_ranges(line, text.source->segment(line))) {
      EXPECT_LE(last.begin, range.begin);
      EXPECT_LE(last.end, range.end);
      for (int64_t i = range.begin; i < range.end; ++i)
        rest[static_cast<size_t>(i)] = ' ';
      last = range;
    }
    std::erase(rest, ' ');
    return rest;
  }

  testing::TemporaryFolder folder_;
  std::string file_ = folder_.write(
      "train", "It's a well-known \"house\" of twenty-one rooms.\nthe house & the rooms\n");
};

TEST_F(PipelineRanges, CoverTheLineWhateverTheSubwords) {
  const std::string line = "It's a \"House\" & well-known rooms.";
  for (const Subword subword :
       {Subword::kNone,
        Subword::kBpe,
        Subword::kSentencePiece,
        Subword::kCharacters,
        Subword::kBytes})
    for (const Tokenizer tokenizer : {Tokenizer::kNone, Tokenizer::kMoses}) {
      TextOptions options{.subword = subword, .subword_size = 60};
      options.lowercase = true;
      options.tokenizer = tokenizer;
      if (tokenizer == Tokenizer::kMoses)
        options.source_language = options.target_language = "en";
      options.moses_escape = options.moses_split_dashes = tokenizer == Tokenizer::kMoses;
      if (tokenizer == Tokenizer::kMoses &&
          (subword == Subword::kCharacters || subword == Subword::kBytes))
        continue;  // which read the line as it is
      EXPECT_EQ(left_out(options, line), "") << enum_name(subword) << ' ' << enum_name(tokenizer);
    }
}

}  // namespace
}  // namespace seqconv::internal
