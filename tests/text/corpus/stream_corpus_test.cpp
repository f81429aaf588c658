#include "text/corpus/stream_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "base/options.h"
#include "support/errors.h"
#include "support/fairseq_files.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"
#include "text/corpus/batcher.h"
#include "text/corpus/token_store.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;
using Rows = std::vector<Ids>;
using Words = std::vector<int64_t>;

constexpr SampleKind kKinds[] = {
    SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines};

/// Words are numbers: "4 5" -> {4, 5}.
Ids encode_numbers(std::string_view line) {
  std::istringstream words{std::string(line)};
  Ids ids;
  for (std::string word; words >> word;) {
    SEQCONV_CHECK(word != "bad", "cannot encode 'bad'");
    ids.push_back(std::stoi(word));
  }
  return ids;
}

/// A symbol a byte, blanks among them: 'a' -> 101.
Ids encode_bytes(std::string_view line) {
  Ids ids;
  for (char c : line)
    ids.push_back(c - 'a' + 101);
  return ids;
}

/// Texts and the corpora made of them.
class StreamCorpusTest : public ::testing::Test {
 protected:
  StreamReport write(
      const std::vector<std::string>& contents,
      SampleKind kind,
      int64_t max_length = 100,
      const LineEncoder& encode = encode_numbers) {
    std::vector<std::string> files;
    for (size_t i = 0; i < contents.size(); ++i)
      files.push_back(folder_.write("text" + std::to_string(i), contents[i]));
    return write_stream_corpus(
        {.files = {files.begin(), files.end()}, .encode = encode},
        {.samples = kind},
        max_length,
        path());
  }
  std::shared_ptr<const SampleSource> open(
      SampleKind kind, int64_t block_tokens = 512, int64_t vocabulary = 1000) {
    return open_stream_corpus(path(), {.samples = kind, .block_tokens = block_tokens}, vocabulary);
  }
  Rows stored() const {
    const TokenStore store(path());
    Rows rows;
    for (int64_t i = 0; i < store.size(); ++i)
      rows.emplace_back(store.tokens(i).begin(), store.tokens(i).end());
    return rows;
  }
  std::filesystem::path path() const { return folder_.path() / "c.tokens"; }

  /// The file that write() makes of its first or second text.
  std::string file(int i) const { return folder_.path() / ("text" + std::to_string(i)); }

  TemporaryFolder folder_;
};

/// All samples, each as a batch of its own: {input, output}.
std::vector<std::pair<Words, Words>> samples_of(const SampleSource& source) {
  std::vector<std::pair<Words, Words>> samples;
  for (int64_t i = 0; i < source.size(); ++i) {
    const uint32_t number = static_cast<uint32_t>(i);
    const Batch batch = source.batch(std::span(&number, 1));
    EXPECT_EQ(batch.target_tokens, source.target_length(i));
    samples.emplace_back(batch.target_in, batch.target_out);
  }
  return samples;
}

TEST_F(StreamCorpusTest, BlocksAreOneStreamOfAllLinesAndFiles) {
  const auto report = write({"4 5\n\n6 3\r\n", "7 8 9"}, SampleKind::kBlocks, 2);
  EXPECT_EQ(stored(), (Rows{{2, 4, 5, 2, 2, 6, 3, 2, 7, 8, 9, 2}}));
  EXPECT_EQ(report.lines, 4);
  EXPECT_EQ(report.blank, 1);
  EXPECT_EQ(report.too_long, 0) << "blocks know no longest line";
  EXPECT_EQ(report.sequences, 1);
  EXPECT_EQ(report.tokens, 11);
  EXPECT_EQ(report.unknown, 1);
  EXPECT_EQ(
      report.summary(),
      "11 tokens (1 unknown) in 1 sequence of 4 lines (1 blank, 0 too long and left out)");
}

TEST_F(StreamCorpusTest, BlocksCarryThePreviousTokenOver) {
  write({"4 5\n\n6 3\r\n", "7 8 9"}, SampleKind::kBlocks);
  EXPECT_THAT(
      samples_of(*open(SampleKind::kBlocks, 4)),
      ElementsAre(
          std::pair(Words{2, 4, 5, 2}, Words{4, 5, 2, 2}),
          std::pair(Words{2, 6, 3, 2}, Words{6, 3, 2, 7}),
          std::pair(Words{7, 8, 9}, Words{8, 9, 2})));
}

TEST_F(StreamCorpusTest, BlocksPredictEveryTokenOnce) {
  write({"4 5 6 7 8 9 10 11 12 13\n14 15\n"}, SampleKind::kBlocks);
  const Ids ids = stored().at(0);
  const Words all(ids.begin() + 1, ids.end());
  for (int64_t block : {1, 2, 3, 7, 13, 14, 15, 1000}) {
    const auto source = open(SampleKind::kBlocks, block);
    EXPECT_EQ(source->size(), (14 + block - 1) / block);
    Words outputs, inputs;
    for (const auto& [in, out] : samples_of(*source)) {
      EXPECT_LE(std::ssize(out), block);
      inputs.insert(inputs.end(), in.begin(), in.end());
      outputs.insert(outputs.end(), out.begin(), out.end());
    }
    EXPECT_EQ(outputs, all) << block;
    EXPECT_EQ(inputs, Words(ids.begin(), ids.end() - 1)) << block;
  }
}

TEST_F(StreamCorpusTest, NoDocumentBlockGoesBeyondItsDocument) {
  const auto report =
      write({"\n4 5\n6\n\n \n7\r\n\r\n", "8 9 10\n", "\n"}, SampleKind::kDocumentBlocks, 2);
  EXPECT_EQ(stored(), (Rows{{2, 4, 5, 2, 6, 2}, {2, 7, 2}, {2, 8, 9, 10, 2}}));
  EXPECT_EQ(report.lines, 9);
  EXPECT_EQ(report.blank, 5);
  EXPECT_EQ(report.sequences, 3);
  EXPECT_EQ(report.tokens, 11);
  const auto source = open(SampleKind::kDocumentBlocks, 3);
  EXPECT_THAT(
      samples_of(*source),
      ElementsAre(
          std::pair(Words{2, 4, 5}, Words{4, 5, 2}),
          std::pair(Words{2, 6}, Words{6, 2}),
          std::pair(Words{2, 7}, Words{7, 2}),
          std::pair(Words{2, 8, 9}, Words{8, 9, 10}),
          std::pair(Words{10}, Words{2})));
}

TEST_F(StreamCorpusTest, LinesAreSamplesOfTheirOwn) {
  const auto report = write({"4 5\n\n6\r\n1 1 1\n", " \n7 8"}, SampleKind::kLines, 3);
  EXPECT_EQ(report.lines, 6);
  EXPECT_EQ(report.blank, 2);
  EXPECT_EQ(report.too_long, 1);
  EXPECT_EQ(report.sequences, 3);
  EXPECT_EQ(report.tokens, 8);
  EXPECT_EQ(
      report.summary(),
      "8 tokens (0 unknown) in 3 sequences of 6 lines (2 blank, 1 too long and left out)");
  EXPECT_THAT(
      samples_of(*open(SampleKind::kLines, /*block_tokens=*/1)),
      ElementsAre(
          std::pair(Words{2, 4, 5}, Words{4, 5, 2}),
          std::pair(Words{2, 6}, Words{6, 2}),
          std::pair(Words{2, 7, 8}, Words{7, 8, 2})))
      << "block_tokens is not for lines";
}

TEST_F(StreamCorpusTest, BlanksThatAreSymbolsCountInBlocksOnly) {
  const std::string text = "a\n  \nb c\n";
  const int32_t blank = ' ' - 'a' + 101;
  const auto report = write({text}, SampleKind::kBlocks, 100, encode_bytes);
  EXPECT_EQ(stored(), (Rows{{2, 101, 2, blank, blank, 2, 102, blank, 103, 2}}));
  EXPECT_EQ(report.blank, 1);
  for (const auto kind : {SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    write({text}, kind, 100, encode_bytes);
    EXPECT_EQ(stored(), (Rows{{2, 101, 2}, {2, 102, blank, 103, 2}}));
  }
}

TEST_F(StreamCorpusTest, BatchesArePaddedAndHaveNoSource) {
  write({"4 5 6\n7\n8 9\n"}, SampleKind::kLines);
  const auto source = open(SampleKind::kLines);
  const std::vector<uint32_t> numbers = {2, 0, 1};
  const Batch batch = source->batch(numbers);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(batch.source_steps, 0);
  EXPECT_TRUE(batch.source.empty());
  EXPECT_TRUE(batch.source_lengths.empty());
  EXPECT_EQ(batch.target_steps, 4);
  EXPECT_EQ(batch.target_in, (Words{2, 8, 9, 1, 2, 4, 5, 6, 2, 7, 1, 1}));
  EXPECT_EQ(batch.target_out, (Words{8, 9, 2, 1, 4, 5, 6, 2, 7, 2, 1, 1}));
  EXPECT_EQ(batch.target_lengths, (Words{3, 4, 2}));
  EXPECT_EQ(batch.target_tokens, 9);
  EXPECT_EQ(batch.pairs, (Words{2, 0, 1}));
  EXPECT_EQ(source->source_length(0), 0);
}

TEST_F(StreamCorpusTest, BatcherKeepsBlocksOfAStreamWithinTheBudget) {
  std::string text;
  for (int line = 0; line < 200; ++line)
    text += "4 5 6 7 8\n";
  write({text}, SampleKind::kBlocks);
  const Batcher batcher(open(SampleKind::kBlocks, 16), {.max_tokens = 64, .multiple = 1}, 1);
  int64_t tokens = 0;
  for (int64_t i = 0; i < batcher.size(); ++i) {
    const Batch batch = batcher.batch(i);
    EXPECT_LE(batch.rows * batch.target_steps, 64);
    EXPECT_EQ(batcher.target_tokens(i), batch.target_tokens);
    tokens += batch.target_tokens;
  }
  EXPECT_EQ(tokens, 1200);
  EXPECT_EQ(batcher.size(), 19) << "75 blocks, four a batch";
}

TEST_F(StreamCorpusTest, SaysWhyNothingIsLeft) {
  for (const SampleKind kind : kKinds) {
    EXPECT_EQ(
        error_of([&] { write({""}, kind); }),
        "no text to learn from in '" + file(0) + "': of 0 lines 0 are blank");
    EXPECT_EQ(
        error_of([&] {
          write({"\n \r\n", "\n"}, kind);
        }),
        "no text to learn from in '" + file(0) + "', '" + file(1) + "': of 3 lines 3 are blank");
    EXPECT_EQ(
        error_of([&] { write({"  \n"}, kind, 100, encode_bytes); }),
        "no text to learn from in '" + file(0) + "': of 1 lines 1 are blank");
  }
  EXPECT_EQ(
      error_of([&] { write({"\n4 5 6\n"}, SampleKind::kLines, 3); }),
      "no text to learn from in '" + file(0) +
          "': of 2 lines 1 are blank and 1 have more than 3 tokens");
  EXPECT_EQ(folder_.entries(), 2) << "something beside the texts was left";
}

TEST_F(StreamCorpusTest, NamesFileAndLineOfBadText) {
  for (const SampleKind kind : kKinds) {
    EXPECT_THAT(
        error_of([&] {
          write({"4\n", "4\n5 \xE4\n"}, kind);
        }),
        HasSubstr(file(1) + ":2: UTF-8 was wanted, but byte 3"));
    EXPECT_EQ(error_of([&] { write({"4\n\nbad\n"}, kind); }), file(0) + ":3: cannot encode 'bad'");
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
  const LineEncoder interrupted = [](std::string_view) -> Ids { throw Interrupted(2, "stopped"); };
  EXPECT_EQ(
      error_of<Interrupted>([&] { write({"4\n"}, SampleKind::kBlocks, 100, interrupted); }),
      "stopped");
}

TEST_F(StreamCorpusTest, KeepsTheOldCorpusAfterAnError) {
  write({"4\n"}, SampleKind::kBlocks);
  EXPECT_NE(error_of([&] { write({"5\nbad\n"}, SampleKind::kBlocks); }), "");
  EXPECT_THAT(
      error_of([&] {
        const LineEncoder encode = [](auto) { return Ids(10'000, 7); };
        testing::FileSizeLimit limit(1 << 16);
        write({"4\n5\n"}, SampleKind::kBlocks, 100, encode);
      }),
      HasSubstr("cannot write '" + path().string()));
  EXPECT_EQ(stored(), (Rows{{2, 4, 2}}));
  EXPECT_EQ(folder_.entries(), 2) << "temporary files were left";
}

TEST_F(StreamCorpusTest, RefusesArgumentsThatCannotGiveACorpus) {
  EXPECT_EQ(
      error_of([&] { write({}, SampleKind::kBlocks); }),
      "a language model's corpus needs one text file at least, but got none");
  EXPECT_EQ(
      error_of([&] { write({"4\n"}, SampleKind::kLines, 1); }),
      "the longest length must be at least 2 (one symbol and </s>), but got 1");
  EXPECT_EQ(
      error_of<UsageError>([] { StreamOptions{.block_tokens = 0}.validate("data"); }),
      "data.block_tokens must be >= 1, but got 0");
  write({"4\n"}, SampleKind::kBlocks);
  const auto largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(open(SampleKind::kBlocks, 1)->size(), 2);
  EXPECT_EQ(open(SampleKind::kBlocks, largest)->target_length(0), 2);
  EXPECT_EQ(
      error_of<UsageError>([&] { open(SampleKind::kBlocks, -1); }),
      "block_tokens must be >= 1, but got -1");
}

TEST_F(StreamCorpusTest, OptionsAreReadByTheirNames) {
  StreamOptions options;
  read_options(Json{{"samples", "document_blocks"}, {"block_tokens", 7}}, "data", options);
  EXPECT_EQ(options.samples, SampleKind::kDocumentBlocks);
  EXPECT_EQ(options.block_tokens, 7);
}

TEST_F(StreamCorpusTest, IdsOutsideTheVocabularyAreTheWrongCorpus) {
  write({"4 5\n9 6\n-1\n"}, SampleKind::kLines);
  const auto source = open(SampleKind::kLines, 512, 9);
  const auto batch = [&](uint32_t sample) { return source->batch(std::span(&sample, 1)); };
  EXPECT_EQ(batch(0).rows, 1);
  EXPECT_EQ(
      error_of([&] { batch(1); }),
      path().string() +
          ": wrong corpus for the vocabulary: sample 1 holds the id 9, but ids must be from 0 to "
          "8");
  EXPECT_THAT(error_of([&] { batch(2); }), HasSubstr("sample 2 holds the id -1"));
  write({"4 5 6 9\n"}, SampleKind::kBlocks);
  const auto blocks = open(SampleKind::kBlocks, 4, 9);
  const uint32_t first = 0;
  EXPECT_THAT(error_of([&] { blocks->batch(std::span(&first, 1)); }), HasSubstr("holds the id 9"))
      << "the last token of a block counts too";
}

TEST_F(StreamCorpusTest, RefusesSamplesThatAreNotThere) {
  write({"4 5 6\n\n7\n"}, SampleKind::kDocumentBlocks);
  const auto source = open(SampleKind::kDocumentBlocks, 2);
  ASSERT_EQ(source->size(), 3);
  for (const int64_t index : {int64_t{-1}, int64_t{3}})
    EXPECT_THAT(
        error_of([&] { source->target_length(index); }),
        HasSubstr("sample " + std::to_string(index) + " was asked for, but there are 3"));
}

TEST_F(StreamCorpusTest, RefusesOtherStores) {
  const auto store = [&](const Rows& rows) {
    TokenStoreWriter writer(path());
    for (const Ids& row : rows)
      writer.append(row);
    writer.finish();
  };
  const auto message = [&](SampleKind kind) { return error_of([&] { open(kind); }); };
  store({{2, 4, 2}, {2, 5, 2}});
  EXPECT_EQ(
      message(SampleKind::kBlocks),
      path().string() + ": samples = 'blocks' needs a corpus of one sequence, but it has 2");
  store({{4, 5}});
  for (const SampleKind kind : kKinds)
    EXPECT_THAT(message(kind), HasSubstr("which begins with </s> (2), but it begins with 4"));
  store({{}});
  EXPECT_THAT(message(SampleKind::kLines), HasSubstr("begins with an empty sequence"));
  store({});
  EXPECT_THAT(message(SampleKind::kLines), HasSubstr("but it is empty"));
  store({{2, 4, 2}, {2}});
  EXPECT_THAT(
      message(SampleKind::kDocumentBlocks),
      HasSubstr("sequence 1 of a language model's corpus needs 2 ids at least, but has 1"));
  EXPECT_THAT(
      error_of([&] { open(SampleKind::kLines)->target_length(1); }),
      HasSubstr("needs 2 ids at least"));
}

TEST_F(StreamCorpusTest, BinarisedSentencesAreWhatTheirLinesAre) {
  const std::string data =
      testing::mapped_bytes<uint16_t>({{4, 5, 2}, {2}, {6, 2}, {3, 7, 8, 9, 2}, {2}, {4, 2}}, 8)
          .write(folder_, "data");
  for (const SampleKind kind : kKinds) {
    const auto report = write({"4 5\n\n6\n3 7 8 9\n\n4\n", "5\n"}, kind, 4);
    const Rows wanted = stored();
    const auto same = write_stream_corpus(
        {.files = {data, file(1)}, .encode = encode_numbers, .vocabulary = 10},
        {.samples = kind},
        4,
        path());
    EXPECT_EQ(stored(), wanted) << enum_name(kind);
    EXPECT_EQ(same.summary(), report.summary());
  }
}

}  // namespace
}  // namespace seqconv::internal
