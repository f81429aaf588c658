#include "text/token_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
