#include "text/corpus/pair_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/errors.h"
#include "support/fairseq_files.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

/// Words are numbers: "4 5" -> {4, 5}.
Ids encode_good_numbers(std::string_view line) {
  std::istringstream words{std::string(line)};
  Ids ids;
  for (std::string word; words >> word;) {
    SEQCONV_CHECK(word != "bad", "cannot encode 'bad'");
    ids.push_back(std::stoi(word));
  }
  return ids;
}

CorpusReport write_corpus(
    const std::vector<std::string>& source,
    const std::vector<std::string>& target,
    const std::filesystem::path& stem,
    int64_t limit = 100) {
  return write_pair_corpus(
      {.files = {source.begin(), source.end()}, .encode = encode_good_numbers},
      {.files = {target.begin(), target.end()}, .encode = encode_good_numbers},
      {limit, limit},
      stem);
}

std::vector<Ids> rows(const TokenSource& source) {
  std::vector<Ids> all;
  for (int64_t i = 0; i < source.size(); ++i)
    all.emplace_back(source.tokens(i).begin(), source.tokens(i).end());
  return all;
}

TEST(PairCorpus, CutsLongSidesAndCountsThem) {
  TemporaryFolder folder;
  const auto source = folder.write("s", "4 5 6 7\n4 5\n4 5 6\n\n4 5 6 7 8\n");
  const auto target = folder.write("t", "1\n2\n7 8 9 10 11\n3 4 5\n3 4 5\n");
  const auto report = write_pair_corpus(
      {.files = {source}, .encode = encode_good_numbers},
      {.files = {target}, .encode = encode_good_numbers},
      {.source = 3, .target = 5, .source_cut = 3, .target_cut = 4},
      folder.path() / "c");
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4, 5}, Ids{4, 5}, Ids{4, 5}, Ids{4, 5}));
  EXPECT_THAT(rows(*corpus.target), ElementsAre(Ids{1}, Ids{2}, Ids{7, 8, 9}, Ids{3, 4, 5}));
  EXPECT_EQ(report.source_cut, 3);
  EXPECT_EQ(report.target_cut, 1);
  EXPECT_THAT(
      report.summary(),
      HasSubstr("4 pairs of 5 (1 with an empty side and 0 too long left out, 3 sources and 1 "
                "targets cut), 12 source"));
}

TEST(PairCorpus, KeepsPairsInOrderAndCountsTheOthers) {
  TemporaryFolder folder;
  const auto source = folder.write("s", "4 5\n\n6\n7 7 7\n8\n9\n");
  const auto target = folder.write("t", "14\n15\n  \n16\n17 17 17\n18 19\n");
  const auto report = write_corpus({source}, {target}, folder.path() / "c", 3);
  EXPECT_EQ(report.lines, 6);
  EXPECT_EQ(report.pairs, 2);
  EXPECT_EQ(report.empty, 2);
  EXPECT_EQ(report.too_long, 2);
  EXPECT_EQ(report.source_tokens, 5);
  EXPECT_EQ(report.target_tokens, 5);
  EXPECT_EQ(
      report.summary(),
      "2 pairs of 6 (2 with an empty side and 2 too long left out), 5 source and 5 target tokens");
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4, 5}, Ids{9}));
  EXPECT_THAT(rows(*corpus.target), ElementsAre(Ids{14}, Ids{18, 19}));
}

TEST(PairCorpus, CountsTheUnknownSymbolsOfThePairsItKeeps) {
  TemporaryFolder folder;
  const auto source = folder.write("s", "3 3 5\n3 3 3 3\n4\n");
  const auto target = folder.write("t", "3 6\n7\n8\n");
  const auto report = write_corpus({source}, {target}, folder.path() / "c", 4);
  EXPECT_EQ(report.source_unknown, 2);
  EXPECT_EQ(report.target_unknown, 1);
  EXPECT_THAT(report.summary(), HasSubstr("6 source and 5 target tokens, 2 and 1 of them unknown"));
}

TEST(PairCorpus, ReadsSeveralFilesOfEachSideOneAfterTheOther) {
  TemporaryFolder folder;
  const auto report = write_corpus(
      {folder.write("s1", "4\n5"), folder.write("s2", "6\n")},
      {folder.write("t1", "7\n8\n"), folder.write("t2", "9")},
      folder.path() / "c");
  EXPECT_EQ(report.pairs, 3);
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4}, Ids{5}, Ids{6}));
  EXPECT_THAT(rows(*corpus.target), ElementsAre(Ids{7}, Ids{8}, Ids{9}));
}

TEST(PairCorpus, TakesWindowsLineEndsMarksAndAMissingLastOne) {
  TemporaryFolder folder;
  write_corpus(
      {folder.write(
          "s",
          "\xEF\xBB\xBF"
          "4\r\n5\r\n")},
      {folder.write("t", "6\n7")},
      folder.path() / "c");
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4}, Ids{5}));
  EXPECT_THAT(rows(*corpus.target), ElementsAre(Ids{6}, Ids{7}));
}

TEST(PairCorpus, NamesFilesOfDifferentLengthAndBothCounts) {
  TemporaryFolder folder;
  const auto two = folder.write("two", "4\n5\n");
  const auto five = folder.write("five", "4\n5\n6\n7\n8");
  const auto message = AllOf(HasSubstr("'" + two + "' has 2"), HasSubstr("'" + five + "' has 5"));
  const auto stem = folder.path() / "c";
  EXPECT_THAT(error_of([&] { write_corpus({two}, {five}, stem); }), message);
  EXPECT_THAT(error_of([&] { write_corpus({five}, {two}, stem); }), message);
  EXPECT_EQ(folder.entries(), 2) << "something was left behind";
}

TEST(PairCorpus, NamesFileAndLineOfBadText) {
  TemporaryFolder folder;
  const auto good = folder.write("good", "4\n5\n6\n");
  const auto stem = folder.path() / "c";
  const auto latin1 = folder.write("latin1", "4\n5 \xE4\n6\n");
  EXPECT_THAT(
      error_of([&] { write_corpus({good}, {latin1}, stem); }),
      AllOf(HasSubstr(latin1 + ":2: "), HasSubstr("byte 3")));
  const auto nul = folder.write("nul", std::string("4\n5\n\0 6\n", 8));
  EXPECT_THAT(
      error_of([&] { write_corpus({nul}, {good}, stem); }),
      AllOf(HasSubstr(nul + ":3: "), HasSubstr("NUL")));
  const auto bad = folder.write("bad", "4\nbad\n6\n");
  EXPECT_THAT(
      error_of([&] { write_corpus({bad}, {good}, stem); }),
      HasSubstr(bad + ":2: cannot encode 'bad'"));
  const auto absent = (folder.path() / "absent").string();
  EXPECT_THAT(
      error_of([&] { write_corpus({absent}, {good}, stem); }),
      AllOf(HasSubstr(absent), HasSubstr("No such file")));
  EXPECT_FALSE(std::filesystem::exists(stem.string() + ".source.tokens"));
}

TEST(PairCorpus, LetsAnInterruptionThroughAsWhatItIs) {
  TemporaryFolder folder;
  const auto file = folder.write("f", "4\n");
  const LineEncoder interrupted = [](std::string_view) -> Ids { throw Interrupted(2, "stopped"); };
  EXPECT_EQ(
      error_of<Interrupted>([&] {
        write_pair_corpus(
            {.files = {file}, .encode = interrupted},
            {.files = {file}, .encode = encode_good_numbers},
            {10, 10},
            folder.path() / "c");
      }),
      "stopped");
}

TEST(PairCorpus, EachSideHasItsOwnLimit) {
  TemporaryFolder folder;
  const auto source = folder.write("s", "4 5 6\n4\n4 5\n");
  const auto target = folder.write("t", "7\n7 8 9\n7 8\n");
  const auto write = [&](const PairLimits& limits) {
    return write_pair_corpus(
        {.files = {source}, .encode = encode_good_numbers},
        {.files = {target}, .encode = encode_good_numbers},
        limits,
        folder.path() / "c");
  };
  EXPECT_EQ(write({4, 3}).pairs, 2);
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4, 5, 6}, Ids{4, 5}));
  EXPECT_EQ(write({3, 4}).too_long, 1);
  EXPECT_THAT(
      error_of([&] {
        write({2, 3});
      }),
      HasSubstr("3 have more than 2 source or 3 target tokens"));
}

TEST(PairCorpus, TakesBinarisedSentencesAsItTakesLines) {
  TemporaryFolder folder;
  const auto bytes =
      testing::mapped_bytes<uint16_t>({{4, 5, 2}, {2}, {6, 2}, {7, 7, 7, 2}, {8, 2}, {9, 2}}, 8);
  const auto other = testing::cached_bytes<int32_t>(
      {{14, 2}, {15, 2}, {2}, {16, 2}, {17, 17, 17, 2}, {18, 19, 2}}, 4);
  CorpusSide source{.files = {bytes.write(folder, "s")}, .vocabulary = 10};
  CorpusSide target{.files = {other.write(folder, "t")}, .vocabulary = 20};
  const auto write = [&] { return write_pair_corpus(source, target, {3, 3}, folder.path() / "c"); };
  EXPECT_EQ(
      write().summary(),
      "2 pairs of 6 (2 with an empty side and 2 too long left out), 5 source and 5 target tokens");
  const PairCorpus corpus = open_pair_corpus(folder.path() / "c");
  EXPECT_THAT(rows(*corpus.source), ElementsAre(Ids{4, 5}, Ids{9}));
  EXPECT_THAT(rows(*corpus.target), ElementsAre(Ids{14}, Ids{18, 19}));
  source.check = [](const Ids& ids) { SEQCONV_CHECK(ids.size() < 3, "three"); };
  EXPECT_EQ(error_of(write), source.files[0].file + ": sentence 4: three");
  source.vocabulary = 9;
  source.check = nullptr;
  EXPECT_THAT(error_of(write), HasSubstr("sentence 6 holds the id 9"));
  source.files[0] = testing::mapped_bytes<int8_t>({{2}}, 2).write(folder, "s");
  EXPECT_EQ(
      error_of(write),
      "parallel files must have the same number of lines, but '" + source.files[0].file +
          "' has 1 and '" + target.files[0].file + "' has 6");
}

TEST(PairCorpus, SaysWhyNothingIsLeft) {
  TemporaryFolder folder;
  const auto stem = folder.path() / "c";
  const auto source = folder.write("s", "\n4 4 4\n");
  const auto target = folder.write("t", "5\n6\n");
  EXPECT_THAT(
      error_of([&] { write_corpus({source}, {target}, stem, 3); }),
      AllOf(
          HasSubstr("'" + source + "' and '" + target + "'"),
          HasSubstr("of 2 lines 1 have an empty side and 1 have more than 3")));
  const auto empty = folder.write("e", "");
  EXPECT_THAT(error_of([&] { write_corpus({empty}, {empty}, stem); }), HasSubstr("of 0 lines"));
}

TEST(PairCorpus, RefusesArgumentsThatCannotGiveACorpus) {
  TemporaryFolder folder;
  const auto file = folder.write("f", "4\n");
  const auto stem = folder.path() / "c";
  EXPECT_THAT(error_of([&] { write_corpus({}, {}, stem); }), HasSubstr("but got 0 and 0"));
  EXPECT_THAT(
      error_of([&] {
        write_corpus({file, file}, {file}, stem);
      }),
      HasSubstr("but got 2 and 1"));
  EXPECT_THAT(
      error_of([&] { write_corpus({file}, {file}, stem, 1); }),
      HasSubstr("at least 2 (one symbol and </s>), but got 1"));
}

TEST(PairCorpus, KeepsTheOldCorpusWhenTheDiskIsFull) {
  TemporaryFolder folder;
  const auto stem = folder.path() / "c";
  const auto small = folder.write("small", "4\n");
  write_corpus({small}, {small}, stem);
  std::string lines;
  for (int i = 0; i < 20'000; ++i)
    lines += "1 2 3 4 5 6 7\n";
  const auto large = folder.write("large", lines);
  EXPECT_THAT(
      error_of([&] {
        testing::FileSizeLimit limit(1 << 16);
        write_corpus({large}, {large}, stem);
      }),
      HasSubstr("cannot write '" + stem.string()));
  EXPECT_THAT(rows(*open_pair_corpus(stem).source), ElementsAre(Ids{4}));
  EXPECT_EQ(folder.entries(), 4) << "temporary files were left";
}

TEST(PairCorpus, RefusesSidesThatDoNotFit) {
  TemporaryFolder folder;
  const auto one = folder.write("one", "4\n");
  const auto two = folder.write("two", "4\n5\n");
  write_corpus({one}, {one}, folder.path() / "a");
  write_corpus({two}, {two}, folder.path() / "b");
  std::filesystem::rename(folder.path() / "a.source.tokens", folder.path() / "b.source.tokens");
  EXPECT_THAT(
      error_of([&] { open_pair_corpus(folder.path() / "b"); }),
      AllOf(HasSubstr("has 1 sequences"), HasSubstr("has 2")));
  EXPECT_THAT(error_of([&] { open_pair_corpus(folder.path() / "a"); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace seqconv::internal
