#include "text/corpus/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "base/files.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Rows = std::vector<std::vector<int32_t>>;

void write_store(const std::filesystem::path& path, const Rows& rows) {
  TokenStoreWriter writer(path);
  for (const auto& row : rows)
    writer.append(row);
  writer.finish();
}

Rows read_store(const std::filesystem::path& path) {
  const TokenStore store(path);
  Rows rows;
  for (int64_t i = 0; i < store.size(); ++i) {
    const auto tokens = store.tokens(i);
    rows.emplace_back(tokens.begin(), tokens.end());
    EXPECT_EQ(store.length(i), static_cast<int64_t>(tokens.size()));
  }
  return rows;
}

/// Random rows, some of them empty.
Rows random_rows(size_t count, size_t longest) {
  std::mt19937 random(1);
  Rows rows(count);
  for (auto& row : rows) {
    row.resize(random() % (longest + 1));
    for (int32_t& id : row)
      id = static_cast<int32_t>(random());
  }
  return rows;
}

TEST(TokenStore, GivesBackWhatWasWritten) {
  TemporaryFolder folder;
  for (const Rows& rows : {Rows{}, Rows{{}}, Rows{{5}}, Rows{{1, 2, 3}, {}, {4}}}) {
    write_store(folder.path() / "t", rows);
    EXPECT_EQ(read_store(folder.path() / "t"), rows);
  }
  EXPECT_EQ(folder.entries(), 1) << "temporary files were left";
}

TEST(TokenStore, GivesBackMoreThanTheWritersBuffersHold) {
  TemporaryFolder folder;
  Rows rows = random_rows(200'000, 9);
  rows.push_back(std::vector<int32_t>(700'000, 7));
  write_store(folder.path() / "t", rows);
  EXPECT_EQ(read_store(folder.path() / "t"), rows);
}

TEST(TokenStore, SequencesGrowPieceByPiece) {
  TemporaryFolder folder;
  const auto path = folder.path() / "t";
  TokenStoreWriter writer(path);
  EXPECT_THAT(
      error_of([&] { writer.extend(std::vector<int32_t>{1}); }),
      HasSubstr("a token store without sequences has none to lengthen"));
  writer.append(std::vector<int32_t>{1});
  writer.extend(std::vector<int32_t>{2, 3});
  writer.extend({});
  writer.append({});
  writer.append({});
  writer.extend(std::vector<int32_t>{4});
  writer.finish();
  EXPECT_EQ(read_store(path), (Rows{{1, 2, 3}, {}, {4}}));
  EXPECT_THAT(
      error_of([&] { writer.extend(std::vector<int32_t>{5}); }),
      HasSubstr("a finished token store cannot grow"));
}

TEST(TokenStore, OneSequenceMayBeLargerThanTheWritersBuffers) {
  TemporaryFolder folder;
  const auto path = folder.path() / "t";
  TokenStoreWriter writer(path);
  writer.append({});
  std::vector<int32_t> all;
  for (const auto& piece : random_rows(150'000, 9)) {
    writer.extend(piece);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  writer.finish();
  EXPECT_EQ(read_store(path), Rows{all});
}

TEST(TokenStore, HasTheDocumentedLayout) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1, 2}, {3}});
  const std::string bytes = read_file(folder.path() / "t");
  ASSERT_EQ(bytes.size(), 32u + 16u + 24u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("SEQCTOK\0", 8));
  const auto word = [&](size_t at) {
    int32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  EXPECT_EQ(word(8), 1) << "version";
  EXPECT_EQ(word(12), 0);
  EXPECT_EQ(word(16), 2) << "sequences";
  EXPECT_EQ(word(24), 3) << "ids";
  EXPECT_EQ(word(32), 1);
  EXPECT_EQ(word(40), 3);
  EXPECT_EQ(word(44), 0) << "padding";
  EXPECT_EQ(word(48), 0);
  EXPECT_EQ(word(56), 2);
  EXPECT_EQ(word(64), 3);
}

TEST(TokenStore, AppearsOnlyWhenFinished) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1}});
  {
    TokenStoreWriter writer(folder.path() / "t");
    writer.append(std::vector<int32_t>{2, 3});
    writer.prepare();
    EXPECT_EQ(read_store(folder.path() / "t"), Rows{{1}});
    EXPECT_THAT(
        error_of([&] { writer.append(std::vector<int32_t>{4}); }), HasSubstr("cannot grow"));
  }
  EXPECT_EQ(read_store(folder.path() / "t"), Rows{{1}});
  EXPECT_EQ(folder.entries(), 1);
}

TEST(TokenStore, LeavesTheOldFileWhenTheDiskIsFull) {
  TemporaryFolder folder;
  const auto path = folder.path() / "t";
  write_store(path, {{1}});
  const std::string message = error_of([&] {
    testing::FileSizeLimit limit(1 << 16);
    write_store(path, random_rows(100'000, 9));
  });
  EXPECT_THAT(message, HasSubstr("cannot write '" + path.string()));
  EXPECT_EQ(read_store(path), Rows{{1}});
  EXPECT_EQ(folder.entries(), 1) << "temporary files were left";
}

TEST(TokenStore, NamesTheFileThatIsNone) {
  TemporaryFolder folder;
  EXPECT_THAT(
      error_of([&] { TokenStore store(folder.path() / "absent"); }),
      ::testing::AllOf(HasSubstr("absent"), HasSubstr("No such file")));
  const auto text = folder.write("text", std::string(100, 'x'));
  EXPECT_THAT(
      error_of([&] { TokenStore store(text); }),
      HasSubstr(text + ": not a token store (its first bytes differ)"));
  const auto empty = folder.write("empty", "");
  EXPECT_THAT(
      error_of([&] { TokenStore store(empty); }), HasSubstr("not a token store, only 0 bytes"));
}

TEST(TokenStore, RefusesEveryTruncation) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1, 2, 3}, {}, {4}});
  const std::string whole = read_file(folder.path() / "t");
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = folder.write("cut", whole.substr(0, size));
    EXPECT_NE(error_of([&] { TokenStore store(path); }), "") << size;
  }
  const auto longer = folder.write("longer", whole + '\0');
  EXPECT_THAT(
      error_of([&] { TokenStore store(longer); }),
      HasSubstr("announces 3 sequences and 4 ids, which does not fit its 81"));
}

TEST(TokenStore, RefusesAnotherVersion) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1}});
  std::string bytes = read_file(folder.path() / "t");
  bytes[8] = 2;
  const auto path = folder.write("t2", bytes);
  EXPECT_THAT(
      error_of([&] { TokenStore store(path); }),
      HasSubstr("version 1 was wanted, but it has version 2"));
}

TEST(TokenStore, RefusesHeadersWhoseSizesOverflow) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1}});
  const std::string bytes = read_file(folder.path() / "t");
  for (const size_t field : {16, 24}) {
    for (const int64_t value :
         {int64_t{-1},
          int64_t{1} << 61,
          int64_t{1} << 62,
          std::numeric_limits<int64_t>::max(),
          std::numeric_limits<int64_t>::min()}) {
      std::string bad = bytes;
      std::memcpy(bad.data() + field, &value, sizeof value);
      const auto path = folder.write("bad", bad);
      EXPECT_THAT(error_of([&] { TokenStore store(path); }), HasSubstr("does not fit"));
    }
  }
}

TEST(TokenStore, NeverReadsOutsideOfDamagedFiles) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", random_rows(20, 5));
  const std::string whole = read_file(folder.path() / "t");
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 1 + round % 3; ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto path = folder.write("damaged", bytes);
    try {
      int64_t sum = 0;
      for (const auto& row : read_store(path))
        for (const int32_t id : row)
          sum += id;
      EXPECT_NE(sum, 1);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(TokenStore, RefusesAnIndexOutsideOfIt) {
  TemporaryFolder folder;
  write_store(folder.path() / "t", {{1}, {2}});
  const TokenStore store(folder.path() / "t");
  for (const int64_t index : {int64_t{-1}, int64_t{2}, int64_t{1} << 62})
    EXPECT_THAT(
        error_of([&] { store.tokens(index); }), HasSubstr("was asked for, but there are 2"));
}

}  // namespace
}  // namespace seqconv::internal
