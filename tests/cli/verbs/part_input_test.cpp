#include "cli/verbs/part_input.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/options.h"
#include "support/temporary_folder.h"

namespace seqconv::internal::verbs {
namespace {

namespace fs = std::filesystem;

class PartInput : public ::testing::Test {
 protected:
  const fs::path& written(const std::string& text) {
    write_file_atomically(file_, text);
    return file_;
  }

  testing::TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "input";
};

// Lines longer than a chunk of the reader are among them.
std::vector<std::string> texts() {
  const std::string chunk(70'000, 'x');
  return {
      "",
      "\n",
      "a",
      "a\n",
      "\n\n\n",
      "a\nbb\nccc\n",
      "a\nbb\nccc",
      chunk + "\na\n" + chunk,
      "a\n" + chunk + chunk + "\nb\n"};
}

TEST_F(PartInput, PartsAreWholeLinesOneBehindTheOther) {
  for (const std::string& text : texts()) {
    const fs::path& file = written(text);
    for (int64_t count = 1; count <= 7; ++count) {
      int64_t end = 0;
      for (int64_t index = 1; index <= count; ++index) {
        const FileRange range = lines_of_part(file, {index, count});
        ASSERT_EQ(range.begin, end);
        ASSERT_LE(range.begin, range.end);
        end = range.end;
        ASSERT_TRUE(
            end == std::ssize(text) || end == 0 || text[static_cast<size_t>(end - 1)] == '\n');
        EXPECT_EQ(lines_before(file, end), std::count(text.begin(), text.begin() + end, '\n'));
      }
      ASSERT_EQ(end, std::ssize(text));
    }
  }
}

TEST_F(PartInput, PartsOfEqualLinesAreEqual) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "0123456\n";
  const fs::path& file = written(text);
  for (int64_t index = 1; index <= 10; ++index) {
    const FileRange range = lines_of_part(file, {index, 10});
    EXPECT_EQ(range.end - range.begin, 800);
  }
}

TEST_F(PartInput, AStreamKnowsWhereItsNextLineBegins) {
  for (const std::string& text : texts()) {
    RangeStream stream(written(text), {0, std::ssize(text)});
    std::string line;
    int64_t place = 0;
    while (std::getline(stream, line)) {
      place += std::ssize(line) + (stream.eof() ? 0 : 1);
      ASSERT_EQ(stream.position(), place);
    }
    EXPECT_EQ(place, std::ssize(text));
  }
  RangeStream middle(written("a\nbb\nccc\n"), {2, 5});
  std::string line;
  std::getline(middle, line);
  EXPECT_EQ(line, "bb");
  EXPECT_FALSE(std::getline(middle, line));
}

TEST_F(PartInput, EveryByteOfASmallFileCounts) {
  const std::string text = "a\nbb\nccc\n";
  const Json print = fingerprint(written(text));
  fs::last_write_time(file_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(fingerprint(file_), print);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = 'x';
    EXPECT_NE(fingerprint(written(other)), print) << i;
  }
  EXPECT_NE(fingerprint(written(text + "\n")), print);
}

TEST_F(PartInput, OfALargeFileSamplesAndTheTimeOfItsChangeCount) {
  const FingerprintLimits limits{.whole = 100, .samples = 4, .sample = 10};
  const auto day = fs::file_time_type::clock::now() - std::chrono::hours(24);
  const auto print = [&](const std::string& text, auto time) {
    written(text);
    fs::last_write_time(file_, time);
    return fingerprint(file_, limits);
  };
  std::string text(1000, 'a');
  const Json before = print(text, day);
  EXPECT_EQ(print(text, day), before);
  EXPECT_NE(print(text, day + std::chrono::milliseconds(1)), before);
  for (const size_t sampled : {size_t{0}, size_t{335}, size_t{665}, size_t{999}}) {
    std::string other = text;
    other[sampled] = 'x';
    EXPECT_NE(print(other, day), before) << sampled;
  }
  text[500] = 'x';  // between samples: only the time tells
  EXPECT_EQ(print(text, day), before);
}

}  // namespace
}  // namespace seqconv::internal::verbs
