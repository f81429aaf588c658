#include "text/corpus/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/errors.h"
#include "support/fairseq_files.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr int64_t kVocabulary = 10;

TEST(SentenceReader, TakesTheKindOfAFileFromItsName) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "one\n\ntwo");
  SentenceReader lines(text, kVocabulary);
  std::vector<std::string> read;
  while (lines.next())
    read.push_back(lines.line());
  EXPECT_TRUE(lines.is_text());
  EXPECT_THAT(read, ElementsAre("one", "", "two"));
  EXPECT_EQ(lines.where(), text + ":3");

  const std::string binarised =
      testing::mapped_bytes<int32_t>({{5, 6, 2}, {2}, {11, 2}}, 4).write(folder, "ids");
  SentenceReader sentences(binarised, kVocabulary);
  EXPECT_FALSE(sentences.is_text());
  ASSERT_TRUE(sentences.next());
  EXPECT_THAT(sentences.ids(), ElementsAre(5, 6));
  ASSERT_TRUE(sentences.next());
  EXPECT_THAT(sentences.ids(), ElementsAre());
  EXPECT_EQ(sentences.where(), binarised + ": sentence 2");
  ASSERT_TRUE(sentences.next());
  EXPECT_THAT(error_of([&] { sentences.ids(); }), HasSubstr("sentence 3"));
  EXPECT_FALSE(sentences.next());
  EXPECT_EQ(sentences.count(), 3);
}

TEST(SentenceReader, GoesOnBehindALineOfBadBytes) {
  const TemporaryFolder folder;
  SentenceReader reader(folder.write("text", "a\n\xFF\nb\n"), kVocabulary);
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(error_of([&] { reader.next(); }), HasSubstr("text:2: UTF-8"));
  EXPECT_EQ(reader.count(), 2);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), "b");
}

TEST(SentenceReader, OfAStreamReplacesAndCounts) {
  std::istringstream stream("a\xFFz\nb");
  SentenceReader reader(stream, "a stream", BadBytes::kReplace);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), "a\xEF\xBF\xBDz");
  EXPECT_EQ(reader.where(), "a stream:1");
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.replaced_lines(), 1);
}

}  // namespace
}  // namespace seqconv::internal
