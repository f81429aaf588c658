#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

Vocabulary load(const std::string& text) {
  const TemporaryFolder folder;
  return Vocabulary::load(folder.write("dict.txt", text));
}

std::string load_error(const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder.write("dict.txt", text);
  const std::string message = error_of([&] { Vocabulary::load(file); });
  EXPECT_THAT(message, HasSubstr(file));
  return message.substr(std::min(file.size(), message.size()));
}

TEST(Vocabulary, SortsByCountThenSymbolAndPadsToAMultiple) {
  const Vocabulary v = Vocabulary::build({{"b", 5}, {"a", 5}, {"é", 5}, {"z", 9}, {"Z", 1}});
  EXPECT_EQ(
      v.to_text(),
      "z 9\na 5\nb 5\né 5\nZ 1\n"
      "madeupword0000 0\nmadeupword0001 0\nmadeupword0002 0\n"
      "madeupword0003 0\nmadeupword0004 0\nmadeupword0005 0\n"
      "madeupword0006 0\n");
  EXPECT_EQ(v.size(), 16);
  EXPECT_EQ(v.id("z"), 4);
  EXPECT_EQ(v.symbol(5), "a");
}

TEST(Vocabulary, HasFairseqsSpecialIds) {
  const Vocabulary v = Vocabulary::build({{"a", 1}}, 1, 0, 1);
  EXPECT_EQ(v.id("<s>"), kBeginId);
  EXPECT_EQ(v.id("<pad>"), kPadId);
  EXPECT_EQ(v.id("</s>"), kEndId);
  EXPECT_EQ(v.id("<unk>"), kUnknownId);
  EXPECT_EQ(v.id("never seen"), kUnknownId);
  EXPECT_EQ(v.id(""), kUnknownId);
  EXPECT_EQ(v.size(), 5);
}

TEST(Vocabulary, SpecialSymbolsInTheTextAreNotListedAgain) {
  const Vocabulary v = Vocabulary::build({{"<unk>", 7}, {"</s>", 3}, {"a", 1}}, 1, 0, 1);
  EXPECT_EQ(v.to_text(), "a 1\n");
}

TEST(Vocabulary, DropsRareSymbolsAndThoseBeyondTheLargestSize) {
  const std::map<std::string, int64_t> counts = {{"a", 3}, {"b", 2}, {"c", 2}, {"d", 1}};
  EXPECT_EQ(Vocabulary::build(counts, 2, 0, 1).to_text(), "a 3\nb 2\nc 2\n");
  EXPECT_EQ(Vocabulary::build(counts, 1, 6, 1).to_text(), "a 3\nb 2\n");
  EXPECT_EQ(Vocabulary::build(counts, 1, 2, 1).size(), 4);
}

TEST(Vocabulary, PaddingSkipsMadeUpWordsThatAreThere) {
  const Vocabulary v = Vocabulary::build({{"madeupword0000", 4}}, 1, 0, 7);
  EXPECT_EQ(v.to_text(), "madeupword0000 4\nmadeupword0001 0\nmadeupword0002 0\n");
}

TEST(Vocabulary, RowsThatOnlyFillUpAreKnownByNameAndCount) {
  const Vocabulary built = Vocabulary::build({{"madeupword0001", 4}, {"a", 2}}, 1, 0, 8);
  EXPECT_EQ(built.symbol(4), "madeupword0001");
  EXPECT_THAT(built.padding(), ::testing::ElementsAre(6, 7));
  EXPECT_EQ(built.text_id("madeupword0001"), 4);
  EXPECT_EQ(built.symbol(6), "madeupword0000");
  EXPECT_EQ(built.text_id("madeupword0000"), 6) << "as fairseq reads it";
  const Vocabulary loaded =
      load("madeupword0007 1\nmadeupword 0\nmadeupword001 0\nmadeupword000x 0\n"
           "b 0\nmadeupword0000 0\nmadeupword12345 0\n");
  EXPECT_THAT(loaded.padding(), ::testing::ElementsAre(9, 10));
  EXPECT_EQ(load(built.to_text()).padding(), built.padding());
  EXPECT_TRUE(load("a 0\n").padding().empty());
}

TEST(Vocabulary, TextNeverGetsTheIdOfWhatIsNoText) {
  const Vocabulary v = Vocabulary::build({{"a", 1}});
  for (const char* text : {"<s>", "<pad>", "</s>", "<unk>"})
    EXPECT_EQ(v.text_id(text), kUnknownId) << text;
  EXPECT_EQ(v.text_id("a"), 4);
}

TEST(Vocabulary, AByteOrderMarkMayBeItsFirstSymbol) {
  const Vocabulary v = Vocabulary::build({{"\uFEFF", 3}, {"\uFEFFa", 2}});
  EXPECT_EQ(load(v.to_text()).id("\uFEFF"), 4);
  EXPECT_EQ(load(v.to_text()).to_text(), v.to_text());
  EXPECT_EQ(load("\uFEFFa 3\n").id("a"), 4) << "that of a file is dropped";
}

TEST(Vocabulary, RequiredSymbolsStayWhateverTheLimits) {
  const std::map<std::string, int64_t> counts = {{"a", 9}, {"b", 8}, {"c", 7}, {"x", 0}, {"y", 1}};
  EXPECT_EQ(Vocabulary::build(counts, 2, 7, 1, {"x", "y"}).to_text(), "a 9\ny 1\nx 0\n");
  EXPECT_EQ(Vocabulary::build(counts, 2, 0, 1, {"y", "z"}).to_text(), "a 9\nb 8\nc 7\ny 1\n");
}

TEST(Vocabulary, HasWhatTextCanGet) {
  const Vocabulary v = Vocabulary::build({{"a", 1}});
  EXPECT_TRUE(v.has("a") && v.has("<unk>"));
  for (const char* other : {"b", "</s>", "<pad>", ""})
    EXPECT_FALSE(v.has(other)) << other;
}

TEST(Vocabulary, ReadsWhatItWrites) {
  const std::string text = "a 3\nein wort 2\n漢 1\n#fairseq:overwrite 0\n";
  const Vocabulary v = load(text);
  EXPECT_EQ(v.to_text(), text);
  EXPECT_EQ(v.id("ein wort"), 5);
  EXPECT_EQ(v.id("漢"), 6);
}

TEST(Vocabulary, ReadsCarriageReturnsAndAMissingFinalNewline) {
  EXPECT_EQ(
      load("\xEF\xBB\xBF"
           "a 3\r\nb 2")
          .to_text(),
      "a 3\nb 2\n");
}

TEST(Vocabulary, TheOverwriteFlagGivesASymbolANewId) {
  const std::string text = "a 3\nb 2\na 1 #fairseq:overwrite\n<unk> 5 #fairseq:overwrite\n";
  const Vocabulary v = load(text);
  EXPECT_EQ(v.size(), 8);
  EXPECT_EQ(v.id("a"), 6);
  EXPECT_EQ(v.symbol(4), "a");
  EXPECT_EQ(v.id("<unk>"), 7);
  EXPECT_EQ(v.to_text(), text);
}

TEST(Vocabulary, CountsBelowZeroAreKept) {
  // What scores of SentencePiece's pieces become.
  const std::string text = "eins -1\nzwei 0\n";
  const Vocabulary v = load(text);
  EXPECT_EQ(v.id("zwei"), 5);
  EXPECT_EQ(v.to_text(), text);
}

TEST(Vocabulary, CountsAreWrittenAsPythonReadsThem) {
  EXPECT_EQ(
      load("a +5\nb 1_000\nc -2_0_0\nd 007\ne -0\nf 0_1\n").to_text(),
      "a 5\nb 1000\nc -200\nd 7\ne 0\nf 1\n");
  const Vocabulary large = load("a 99999999999999999999\nb -99999999999999999999\n"
                                "c 9223372036854775808\nd 9223372036854775807\n"
                                "e -9223372036854775808\nf 1_000_000_000_000_000_000_000\n");
  EXPECT_EQ(
      large.to_text(),
      "a 9223372036854775807\nb -9223372036854775808\n"
      "c 9223372036854775807\nd 9223372036854775807\n"
      "e -9223372036854775808\nf 9223372036854775807\n");
  for (const std::string count :
       {"+",
        "-",
        "_",
        "_5",
        "5_",
        "1__0",
        "+-5",
        "-+5",
        "+_5",
        "--5",
        "5-",
        "0x5",
        "5.0",
        "1e3",
        "\u0665"})
    EXPECT_THAT(load_error(concat("a ", count, "\n")), HasSubstr(":1: 'symbol count' was wanted"))
        << count;
}

TEST(Vocabulary, ErrorsNameFileAndLine) {
  EXPECT_EQ(load_error("a 3\nb\n"), ":2: 'symbol count' was wanted, but got 'b'");
  EXPECT_EQ(load_error("a x3\n"), ":1: 'symbol count' was wanted, but got 'a x3'");
  EXPECT_EQ(load_error("a 3\n\n"), ":2: 'symbol count' was wanted, but got ''");
  EXPECT_EQ(load_error(" 3\n"), ":1: 'symbol count' was wanted, but got ' 3'");
  EXPECT_EQ(
      load_error("a 3\nb 1\na 1\n"),
      ":3: the symbol 'a' is there already, as id 4 (a line may end in #fairseq:overwrite to "
      "replace it)");
  EXPECT_THAT(load_error("</s> 3\n"), HasSubstr("as id 2"));
  EXPECT_THAT(load_error("a 3\n\xFF 2\n"), HasSubstr(":2: UTF-8 was wanted"));
  EXPECT_EQ(load_error(""), ": a dictionary was wanted, but the file is empty");
}

TEST(Vocabulary, AnIdOutOfRangeIsAnError) {
  const Vocabulary v = Vocabulary::build({{"a", 1}});
  EXPECT_EQ(error_of([&] { v.symbol(8); }), "an id must be from 0 to 7, but got 8");
  EXPECT_EQ(error_of([&] { v.symbol(-1); }), "an id must be from 0 to 7, but got -1");
}

}  // namespace
}  // namespace seqconv::internal
