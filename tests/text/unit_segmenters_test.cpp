#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::IsEmpty;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;
using Symbols = std::vector<std::string>;

/// The text of a joined translation model that has read `content`.
TranslationText text_of(const std::string& content, TextOptions options) {
  const TemporaryFolder folder;
  const auto file = folder.write("text", content);
  return TranslationText::create(options, {file}, {file});
}

TextOptions options_of(Subword subword) {
  TextOptions options;
  options.subword = subword;
  return options;
}

TEST(CharacterSegmenter, GivesOneSymbolPerCodePoint) {
  const auto segmenter = make_character_segmenter();
  EXPECT_THAT(segmenter->split("aé漢😀"), ElementsAre("a", "é", "漢", "😀"));
  EXPECT_THAT(segmenter->split("e\xCC\x81"), ElementsAre("e", "\xCC\x81"))
      << "a combining accent is a code point of its own";
  EXPECT_THAT(segmenter->split(""), IsEmpty());
  EXPECT_EQ(segmenter->kind(), Subword::kCharacters);
  EXPECT_EQ(segmenter->model(), "");
}

TEST(CharacterSegmenter, KeepsEveryBlankAsASymbol) {
  const auto segmenter = make_character_segmenter();
  EXPECT_THAT(segmenter->split(" a  b "), ElementsAre("▁", "a", "▁", "▁", "b", "▁"));
  EXPECT_THAT(segmenter->split("   "), ElementsAre("▁", "▁", "▁"));
  EXPECT_EQ(segmenter->join(segmenter->split(" a  b ")), " a  b ");
  EXPECT_EQ(segmenter->join(segmenter->split("a▁b")), "a b");
  EXPECT_THAT(segmenter->split("a\xC2\xA0"), ElementsAre("a", "\xC2\xA0"))
      << "a no-break space is another character";
}

TEST(CharacterSegmenter, PrintsForeignSymbolsAsTheyAre) {
  EXPECT_EQ(
      make_character_segmenter()->join({"a", "<unk>", "▁", "madeupword0000"}),
      "a<unk> madeupword0000");
}

TEST(ByteSegmenter, SpellsEveryByte) {
  const auto segmenter = make_byte_segmenter();
  EXPECT_THAT(segmenter->split("a é"), ElementsAre("<0x61>", "<0x20>", "<0xC3>", "<0xA9>"));
  EXPECT_THAT(segmenter->split("   "), Symbols(3, "<0x20>"));
  EXPECT_THAT(segmenter->split(""), IsEmpty());
  EXPECT_EQ(segmenter->kind(), Subword::kBytes);
  EXPECT_EQ(segmenter->model(), "");
}

TEST(ByteSegmenter, GivesAllBytesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  const auto segmenter = make_byte_segmenter();
  EXPECT_EQ(segmenter->split(bytes), byte_symbols());
  EXPECT_EQ(segmenter->join(byte_symbols()), bytes);
  const auto& symbols = byte_symbols();
  EXPECT_EQ(std::set<std::string>(symbols.begin(), symbols.end()).size(), 256u);
}

TEST(ByteSegmenter, LeavesIncompleteCharactersAndForeignSymbols) {
  const auto segmenter = make_byte_segmenter();
  EXPECT_EQ(segmenter->join({"<0x61>", "<0xE6>", "<0xBC>"}), "a\xE6\xBC");
  EXPECT_EQ(
      segmenter->join({"<unk>", "<0x62>", "<0xc3>", "<0x1>", "<0xGG>"}), "<unk>b<0xc3><0x1><0xGG>");
}

TEST(UnitText, CountsBlanksAndDecodesThemAgain) {
  for (const Subword subword : {Subword::kCharacters, Subword::kBytes}) {
    const auto text = text_of("a  b c\n é\n", options_of(subword));
    EXPECT_EQ(text.source->encode("   ").size(), 3u);
    EXPECT_TRUE(text.source->encode("").empty());
    EXPECT_TRUE(text.source->encode("\r").empty());
    for (const char* line : {"   ", " a  b", "é ", "a é", ""})
      EXPECT_EQ(text.source->decode(text.source->encode(line)), line);
    EXPECT_EQ(text.source->encode("a\tb"), text.source->encode("a b")) << "tabs are blanks";
  }
}

TEST(UnitText, VisitsTheSymbolsThatItSplits) {
  for (const auto& segmenter :
       {make_character_segmenter(), make_byte_segmenter(), make_word_segmenter()}) {
    Symbols visited;
    segmenter->visit(" a é漢", [&](std::string_view symbol) { visited.emplace_back(symbol); });
    EXPECT_FALSE(visited.empty());
    EXPECT_EQ(visited, segmenter->split(" a é漢"));
  }
}

TEST(UnitText, UnknownCharactersPrintAsUnk) {
  const auto text = text_of("ab\n", options_of(Subword::kCharacters));
  EXPECT_EQ(text.source->encode("a漢b"), (Ids{4, 3, 5}));
  EXPECT_EQ(text.source->decode({4, 3, 5}), "a<unk>b");
}

TEST(UnitText, LimitsOfTheVocabularyHoldForCharacters) {
  TextOptions options = options_of(Subword::kCharacters);
  options.min_count = 3;  // both sides read the text
  const auto text = text_of("abcab a\n", options);
  EXPECT_EQ(text.source->encode("abc "), (Ids{4, 5, 3, 3}));
}

TEST(UnitText, NoByteIsEverUnknown) {
  const auto text = text_of("bab\n", options_of(Subword::kBytes));
  const Vocabulary& vocabulary = text.source->vocabulary();
  EXPECT_EQ(vocabulary.size(), 264);
  EXPECT_EQ(vocabulary.symbol(4), "<0x62>") << "the most frequent one first";
  EXPECT_EQ(vocabulary.symbol(6), "<0x00>") << "then those that never came";
  for (const std::string& symbol : byte_symbols())
    EXPECT_GT(vocabulary.id(symbol), kUnknownId) << symbol;
  EXPECT_EQ(text.source->decode(text.source->encode("漢 😀")), "漢 😀");
}

TEST(UnitText, LimitsOfTheVocabularyAreRefusedForBytes) {
  TextOptions options = options_of(Subword::kBytes);
  options.min_count = 2;
  EXPECT_EQ(
      error_of<UsageError>([&] { options.validate(); }),
      "text.min_count has no effect with text.subword = 'bytes': its vocabulary is all 256 bytes");
  options.min_count = 1;
  options.max_vocabulary = 100;
  EXPECT_EQ(
      error_of<UsageError>([&] { options.validate("lm.text"); }),
      "lm.text.max_vocabulary has no effect with lm.text.subword = 'bytes': its vocabulary is all "
      "256 bytes");
}

TEST(UnitText, LearnedModelsAreRefused) {
  TextOptions options = options_of(Subword::kCharacters);
  options.bpe_codes = "codes";
  EXPECT_EQ(
      error_of<UsageError>([&] { options.validate(); }),
      "text.bpe_codes needs text.subword = 'bpe', but that is 'characters'");
}

TEST(UnitText, NoModelFileIsWritten) {
  for (const Subword subword : {Subword::kCharacters, Subword::kBytes}) {
    const TemporaryFolder folder;
    const Json json = text_of("ab\n", options_of(subword)).save(folder.path());
    EXPECT_EQ(json["subword"], enum_name(subword));
    EXPECT_FALSE(json["source"].contains("model"));
    EXPECT_EQ(folder.entries(), 1) << "dict.txt alone was wanted";
  }
}

}  // namespace
}  // namespace seqconv::internal
