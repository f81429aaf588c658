#include "text/corpus/fairseq_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/errors.h"
#include "support/fairseq_files.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::append_number;
using testing::cached_bytes;
using ::testing::ElementsAre;
using testing::error_of;
using testing::FairseqBytes;
using ::testing::HasSubstr;
using testing::mapped_bytes;
using testing::Sentences;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr int64_t kFairseqVocabulary = 120;

const Sentences& sentences() {
  static const Sentences all = {{5, 6, 7, 2}, {2}, {100, 2, 3, 2}, {119, 2}};
  return all;
}

std::vector<Ids> read_rows(const std::string& file) {
  const auto source = open_fairseq_data(file, kFairseqVocabulary);
  std::vector<Ids> all;
  for (int64_t i = 0; i < source->size(); ++i) {
    const auto ids = source->tokens(i);
    EXPECT_EQ(source->length(i), std::ssize(ids));
    all.emplace_back(ids.begin(), ids.end());
  }
  return all;
}

const auto kSame = ElementsAre(Ids{5, 6, 7}, Ids{}, Ids{100, 2, 3}, Ids{119});

template <class T>
void check_kind(uint8_t code) {
  const TemporaryFolder folder;
  EXPECT_THAT(read_rows(mapped_bytes<T>(sentences(), code).write(folder, "m")), kSame) << int{code};
  EXPECT_THAT(read_rows(cached_bytes<T>(sentences(), code).write(folder, "c")), kSame) << int{code};
}

TEST(FairseqData, EveryKindOfNumbersGivesTheSameIds) {
  check_kind<uint8_t>(1);
  check_kind<int8_t>(2);
  check_kind<int16_t>(3);
  check_kind<int32_t>(4);
  check_kind<int64_t>(5);
  check_kind<uint16_t>(8);
  check_kind<uint32_t>(9);
  check_kind<uint64_t>(10);
}

TEST(FairseqData, EitherFileNamesBoth) {
  const TemporaryFolder folder;
  const std::string name = "test.de-en.de";
  mapped_bytes<uint16_t>(sentences(), 8).write(folder, name);
  EXPECT_THAT(read_rows(folder.path() / (name + ".bin")), kSame);
  EXPECT_THAT(read_rows(folder.path() / (name + ".idx")), kSame);
  EXPECT_TRUE(is_fairseq_data("a/b.bin"));
  EXPECT_TRUE(is_fairseq_data("b.idx"));
  EXPECT_FALSE(is_fairseq_data("a.bin/b"));
  EXPECT_FALSE(is_fairseq_data("bin"));
  EXPECT_THAT(
      error_of([&] { open_fairseq_data("text.de", 10); }),
      HasSubstr("names that end in .bin or .idx, but got 'text.de'"));
}

TEST(FairseqData, ASentenceWithoutEndIsTakenWhole) {
  const TemporaryFolder folder;
  const auto bytes = mapped_bytes<int32_t>({{5, 6}, {}, {2, 2}}, 4);
  EXPECT_THAT(read_rows(bytes.write(folder, "m")), ElementsAre(Ids{5, 6}, Ids{}, Ids{2}));
}

TEST(FairseqData, DataWithoutSentencesAreEmpty) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_rows(mapped_bytes<int32_t>({}, 4).write(folder, "m")).empty());
  EXPECT_TRUE(read_rows(cached_bytes<int32_t>({}, 4).write(folder, "c")).empty());
}

TEST(FairseqData, WhatIsMissingIsNamed) {
  const TemporaryFolder folder;
  folder.write("a.bin", "xx");
  EXPECT_THAT(
      error_of([&] { open_fairseq_data(folder.path() / "a.bin", 10); }),
      HasSubstr("a.idx' is not there beside 'a.bin'"));
  folder.write("b.idx", "xx");
  EXPECT_THAT(
      error_of([&] { open_fairseq_data(folder.path() / "b.idx", 10); }),
      HasSubstr("b.bin' is not there beside 'b.idx'"));
}

TEST(FairseqData, AnotherDictionaryIsToldWithTheSentence) {
  const TemporaryFolder folder;
  const std::vector<std::pair<FairseqBytes, std::string>> cases = {
      {mapped_bytes<int32_t>({{5, 2}, {6, 120, 2}}, 4),
       "x.bin: wrong dictionary for this data: sentence 2 holds the id 120, but the dictionary has "
       "ids from 0 to 119"},
      {cached_bytes<int32_t>({{120, 2}}, 4), "sentence 1 holds the id 120"},
      {mapped_bytes<int32_t>({{-1, 2}}, 4), "sentence 1 holds the id -1"},
      {cached_bytes<int64_t>({{-1, 2}}, 5), "sentence 1 holds the id -1"},
      {mapped_bytes<int64_t>({{INT64_MIN, 2}}, 5), "holds the id -9223"},
      {mapped_bytes<uint64_t>({{-1, 2}}, 10), "holds the id 9223372036854"},
      {mapped_bytes<uint32_t>({{-1, 2}}, 9), "holds the id 4294967295"},
      {cached_bytes<int64_t>({{INT64_MIN, 2}}, 5), "holds the id -9223"},
      {mapped_bytes<uint16_t>({{5, 1, 2}}, 8), "sentence 1 holds <pad> (1)"},
  };
  for (const auto& [bytes, wanted] : cases)
    EXPECT_THAT(error_of([&] { read_rows(bytes.write(folder, "x")); }), HasSubstr(wanted));
}

/// Writes a number over the bytes at `position`.
template <class T>
void put(std::string& bytes, size_t position, T value) {
  std::string number;
  append_number<T>(number, value);
  bytes.replace(position, number.size(), number);
}

// Four sentences. Mapped: magic 9, version 8, code 1, count 8, lengths 4 x 4,
// places 4 x 8. Cached: magic 8, five fields of 8, dimensions 5 x 8, places
// 5 x 8, sizes 4 x 8.
struct Damage {
  const char* wanted;
  std::function<void(FairseqBytes&)> spoil;
};

void check_damage(FairseqBytes good, const std::vector<Damage>& table) {
  const TemporaryFolder folder;
  for (const auto& [wanted, spoil] : table) {
    FairseqBytes bytes = good;
    spoil(bytes);
    EXPECT_THAT(error_of([&] { read_rows(bytes.write(folder, "x")); }), HasSubstr(wanted));
  }
}

TEST(FairseqDataHostile, DamagedMappedFilesAreErrors) {
  const char* unfit = "which does not fit its 74 bytes (truncated or damaged)";
  check_damage(
      mapped_bytes<int32_t>(sentences(), 4),
      {
          {"first bytes are no such one's", [](auto& x) { x.index = ""; }},
          {"first bytes are no", [](auto& x) { x.index[0] = 'm'; }},
          {"first bytes are no", [](auto& x) { x.index[8] = 1; }},
          {"Huffman-coded", [](auto& x) { x.index.replace(0, 4, "HUFF"); }},
          {"breaks off in its header, after 12", [](auto& x) { x.index.resize(12); }},
          {"breaks off in its header, after 17", [](auto& x) { x.index.resize(17); }},
          {"breaks off in its header, after 25", [](auto& x) { x.index.resize(25); }},
          {"version 1 was wanted, but it has version 2",
           [](auto& x) { put<uint64_t>(x.index, 9, 2); }},
          {"floating-point numbers (code 6)", [](auto& x) { x.index[17] = 6; }},
          {"floating-point numbers (code 7)", [](auto& x) { x.index[17] = 7; }},
          {"from 1 to 10, but got 0", [](auto& x) { x.index[17] = 0; }},
          {"from 1 to 10, but got 11", [](auto& x) { x.index[17] = 11; }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 18, 5); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 18, 3); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 18, UINT64_MAX); }},
          // 12 times this is 48 modulo 2^64.
          {unfit, [](auto& x) { put<uint64_t>(x.index, 18, (uint64_t{1} << 62) + 4); }},
          {"does not fit its 73 bytes", [](auto& x) { x.index.pop_back(); }},
          {"does not fit its 75 bytes", [](auto& x) { x.index += 'x'; }},
          {"sentence 1 has -1 ids", [](auto& x) { put<int32_t>(x.index, 26, -1); }},
          {"sentence 4 has 2147483647 ids", [](auto& x) { put<int32_t>(x.index, 38, INT32_MAX); }},
          {"sentence 1 has 4 ids from id -1 on, but the file holds 11",
           [](auto& x) { put<int64_t>(x.index, 42, -4); }},
          {"sentence 1 has 4 ids from id 8 on", [](auto& x) { put<int64_t>(x.index, 42, 32); }},
          {"ids from id 2305843009213693951 on",
           [](auto& x) { put<int64_t>(x.index, 42, INT64_MAX - 3); }},
          {"begins at byte 3, which is not a multiple of the 4",
           [](auto& x) { put<int64_t>(x.index, 42, 3); }},
          {"sentence 4 has 2 ids from id 9 on, but the file holds 10",
           [](auto& x) { x.data.pop_back(); }},
          {"but the file holds 0 (truncated, or the index of other data)",
           [](auto& x) { x.data.clear(); }},
      });
}

TEST(FairseqDataHostile, DamagedCachedFilesAreErrors) {
  const char* unfit = "which does not fit its 160 bytes (truncated or damaged)";
  check_damage(
      cached_bytes<int16_t>(sentences(), 3),
      {
          {"breaks off in its header, after 40", [](auto& x) { x.index.resize(40); }},
          {"has version 0", [](auto& x) { put<uint64_t>(x.index, 8, 0); }},
          {"numbers (code 7)", [](auto& x) { put<uint64_t>(x.index, 16, 7); }},
          {"but got 260", [](auto& x) { put<uint64_t>(x.index, 16, 260); }},
          {"ids of 2 bytes were wanted, as their kind says, but got 4",
           [](auto& x) { put<uint64_t>(x.index, 24, 4); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 32, 5); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 32, UINT64_MAX); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 32, uint64_t{1} << 60 | 4); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 40, 3); }},
          {unfit, [](auto& x) { put<uint64_t>(x.index, 40, UINT64_MAX); }},
          {"does not fit its 159 bytes", [](auto& x) { x.index.pop_back(); }},
          {"sentence 1 must have one dimension, but its sizes go from entry 0 to 2 of 4",
           [](auto& x) { put<int64_t>(x.index, 56, 2); }},
          {"from entry -1", [](auto& x) { put<int64_t>(x.index, 48, -1); }},
          {"from entry 9223372036854775807", [](auto& x) { put<int64_t>(x.index, 48, INT64_MAX); }},
          {"from entry 4 to 5",
           [](auto& x) {
             put<int64_t>(x.index, 48, 4);
             put<int64_t>(x.index, 56, 5);
           }},
          {"sentence 1 goes from id -1 to 4, but has 4 ids",
           [](auto& x) { put<int64_t>(x.index, 88, -1); }},
          {"goes from id 0 to -9223", [](auto& x) { put<int64_t>(x.index, 96, INT64_MIN); }},
          {"but has -4 ids", [](auto& x) { put<int64_t>(x.index, 128, -4); }},
          {"but the file holds 10", [](auto& x) { x.data.pop_back(); }},
      });
}

TEST(FairseqDataHostile, ASentenceThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  const auto source = open_fairseq_data(
      mapped_bytes<int32_t>(sentences(), 4).write(folder, "m"), kFairseqVocabulary);
  for (const int64_t index : {int64_t{-1}, int64_t{4}})
    EXPECT_THAT(
        error_of([&] { source->tokens(index); }), HasSubstr("was asked for, but there are 4"));
}

}  // namespace
}  // namespace seqconv::internal
