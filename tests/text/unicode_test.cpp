#include "text/unicode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "base/one_line.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr size_t kValid = std::string_view::npos;

std::vector<std::string> read_all(
    const std::string& content, BadBytes bad_bytes = BadBytes::kReject) {
  std::istringstream stream(content);
  LineReader reader(stream, "text", bad_bytes);
  std::vector<std::string> lines;
  std::string line;
  while (reader.next(line))
    lines.push_back(line);
  return lines;
}

TEST(Utf8, AcceptsTheFirstAndLastCodePointOfEveryLength) {
  for (const char* text :
       {"\x01",
        "\x7F",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(find_invalid_utf8(text), kValid) << text;
  EXPECT_EQ(find_invalid_utf8(std::string_view("\0", 1)), kValid);
}

TEST(Utf8, FindsTheFirstByteOfIllFormedSequences) {
  for (const char* bad :
       {"\x80",              // continuation without a start
        "\xC0\xAF",          // overlong
        "\xC1\xBF",          // overlong
        "\xE0\x9F\xBF",      // overlong
        "\xF0\x8F\xBF\xBF",  // overlong
        "\xED\xA0\x80",      // surrogate
        "\xED\xBF\xBF",      // surrogate
        "\xF4\x90\x80\x80",  // above U+10FFFF
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xC3",             // cut off
        "\xE2\x82",         // cut off
        "\xF0\x9F\x98"}) {  // cut off
    EXPECT_EQ(find_invalid_utf8(bad), 0u);
    EXPECT_EQ(find_invalid_utf8(std::string("a\xC3\xA9") + bad + "b"), 3u);
  }
}

TEST(Utf8, ReplacementMakesAnyBytesValidAndKeepsValidText) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 24; ++i)
      bytes += static_cast<char>(random() % 4 == 0 ? 'a' : random());
    const std::string replaced = replace_invalid_utf8(bytes);
    EXPECT_EQ(find_invalid_utf8(replaced), kValid);
    EXPECT_EQ(replaced == bytes, find_invalid_utf8(bytes) == kValid);
    EXPECT_EQ(replace_invalid_utf8(replaced), replaced);
    EXPECT_EQ(find_invalid_utf8(clean_line(bytes)), kValid);
    EXPECT_EQ(find_invalid_utf8(to_lower(replaced)), kValid);
    std::string joined;
    for (std::string_view character : split_characters(bytes))
      joined += character;
    EXPECT_EQ(joined, bytes);
  }
}

TEST(Utf8, WordsAreSplitAtUnicodeWhiteSpace) {
  EXPECT_THAT(
      split_words("  a\tb\xC2\xA0"
                  "c\xE3\x80\x80\xC3\xA9\x1F"
                  "d\xE2\x80\xA8"),
      ElementsAre("a", "b", "c", "\xC3\xA9", "d"));
  EXPECT_TRUE(split_words(" \xC2\x85 ").empty());
  // Zero-width space and byte-order mark are no white space.
  EXPECT_EQ(
      split_words("a\xE2\x80\x8B"
                  "b\xEF\xBB\xBF"
                  "c")
          .size(),
      1u);
}

TEST(Utf8, LinesKeepTheirEnds) {
  EXPECT_THAT(
      split_lines("a\r\n\rb\n\nc\vd\fe\x1C\x1D\x1E f\xC2\x85g\u2028\u2029h\t\x1Fi"),
      ElementsAre(
          "a\r\n",
          "\r",
          "b\n",
          "\n",
          "c\v",
          "d\f",
          "e\x1C",
          "\x1D",
          "\x1E",
          " f\xC2\x85",
          "g\u2028",
          "\u2029",
          "h\t\x1Fi"));
  EXPECT_TRUE(split_lines("").empty());
  EXPECT_THAT(split_lines("é\xE2\x80\n"), ElementsAre("é\xE2\x80\n"));
}

TEST(Utf8, BlankTextHasNoWords) {
  for (const char* blank : {"", " ", " \t\r\n", "\xC2\xA0", "\xE3\x80\x80 "})
    EXPECT_TRUE(is_blank(blank)) << "'" << blank << "'";
  for (const char* text : {"a", "  a", "\xC2\xA0.", "\xE2\x80\x8B", "\xFF"})
    EXPECT_FALSE(is_blank(text)) << "'" << text << "'";
}

TEST(LowerCase, UsesTheFullMappingOfTheRootLocale) {
  EXPECT_EQ(to_lower("Hello, WORLD 42"), "hello, world 42");
  EXPECT_EQ(to_lower("GRÖSSE Straße ÀÉ"), "grösse straße àé");
  EXPECT_EQ(to_lower("\xC4\xB0"),
            "i\xCC\x87");                       // I with a dot: two code points
  EXPECT_EQ(to_lower("ΟΔΟΣ ΣΑΣ"), "οδος σας");  // final sigma
  EXPECT_EQ(to_lower("Ⅷ Ǆ"), "ⅷ ǆ");
  EXPECT_EQ(to_lower(""), "");
}

TEST(LowerCase, GrowsWhereTheLowerCaseIsLonger) {
  std::string upper;
  std::string lower;
  for (int i = 0; i < 5000; ++i) {
    upper += "\xC8\xBA";      // U+023A, two bytes
    lower += "\xE2\xB1\xA5";  // U+2C65, three bytes
  }
  EXPECT_EQ(to_lower(upper), lower);
}

TEST(CleanLine, TurnsControlCharactersIntoBlanksAndDropsOneCarriageReturn) {
  EXPECT_EQ(clean_line("a\tb\r"), "a b");
  EXPECT_EQ(one_line("a\tb\r"), "a b ");
  EXPECT_EQ(clean_line("a\r\r"), "a ");
  EXPECT_EQ(clean_line(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(clean_line("a\x7F\xC2\x85\xE2\x80\xA8\xE2\x80\xA9z"), "a    z");
  EXPECT_EQ(clean_line("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(clean_line("caf\xC3\xA9 \xF0\x9F\x98\x80"), "caf\xC3\xA9 \xF0\x9F\x98\x80");
}

TEST(LineReader, ReadsEveryKindOfLineEnd) {
  EXPECT_THAT(read_all("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(read_all("a\r\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(read_all("a\n\n\r\nb"), ElementsAre("a", "", "", "b"));
  EXPECT_THAT(read_all("\n"), ElementsAre(""));
  EXPECT_THAT(read_all("a\rb\n"), ElementsAre("a\rb"));
  EXPECT_TRUE(read_all("").empty());
}

TEST(LineReader, GivesLinesWithTheirEnds) {
  std::istringstream stream("\xEF\xBB\xBF"
                            "a\r\n\nb\rc");
  LineReader reader(stream, "text", BadBytes::kReject);
  std::vector<std::string> lines;
  for (std::string line; reader.next_with_end(line);)
    lines.push_back(line);
  EXPECT_THAT(lines, ElementsAre("a\r\n", "\n", "b\rc"));
}

TEST(LineReader, SkipsAByteOrderMarkAtTheStartOnly) {
  EXPECT_THAT(
      read_all("\xEF\xBB\xBF"
               "a\n\xEF\xBB\xBF"
               "b"),
      ElementsAre(
          "a",
          "\xEF\xBB\xBF"
          "b"));
  EXPECT_THAT(read_all("\xEF\xBB\xBF"), ElementsAre(""));
}

TEST(LineReader, ReadsVeryLongLines) {
  const std::string text(1'000'000, 'x');
  EXPECT_THAT(read_all(text + "\r\n" + text), ElementsAre(text, text));
}

TEST(LineReader, NamesFileLineAndByteOfBadText) {
  const TemporaryFolder folder;
  const std::string file = folder.write("bad.txt", "fine\nab\xFF\n");
  LineReader reader(file);
  std::string line;
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(
      error_of([&] { reader.next(line); }),
      file + ":2: UTF-8 was wanted, but byte 3 of the line is 0xFF");
  EXPECT_EQ(
      error_of([] { read_all(std::string("a\nb\0c", 5)); }),
      "text:2: text was wanted, but byte 2 of the line is NUL");
  EXPECT_THAT(
      error_of([] {
        read_all(std::string(
            "\xFF\xFE"
            "a\0\n\0",
            6));
      }),
      HasSubstr("looks like UTF-16"));
}

TEST(LineReader, ReplacesBadBytesInLenientMode) {
  EXPECT_THAT(
      read_all(std::string("a\0b\xC0\xAF\n\xE2\x82", 8), BadBytes::kReplace),
      ElementsAre("a b\xEF\xBF\xBD\xEF\xBF\xBD", "\xEF\xBF\xBD"));
}

TEST(LineReader, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "missing").string();
  EXPECT_EQ(
      error_of([&] { LineReader reader(missing); }),
      "cannot read '" + missing + "': No such file or directory");
  EXPECT_THAT(
      error_of([&] { LineReader reader(folder.path()); }),
      EndsWith("a file was wanted, but it is a folder"));
}

}  // namespace
}  // namespace seqconv::internal
