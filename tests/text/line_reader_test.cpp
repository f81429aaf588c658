#include "text/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
