#include "train/metrics_log.h"

#include <gmock/gmock.h>

#include "seqconv/base/files.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv {
namespace {

TEST(MetricsLog, EveryRecordIsALine) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  MetricsLog log(file, 0);
  log.write({{"update", 1}});
  EXPECT_EQ(read_file(file), "{\"update\":1}\n");  // at once
  log.write({{"update", 2}, {"text", "a\nb"}});
  EXPECT_EQ(log.records(), 2);
  EXPECT_EQ(
      read_file(file),
      "{\"update\":1}\n{\"update\":2,\"text\":\"a\\nb\"}\n");
}

TEST(MetricsLog, ResumingCutsWhatCameLater) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file =
      folder.write("metrics.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":");
  MetricsLog log(file, 2);
  log.write({{"a", 9}});
  EXPECT_EQ(read_file(file), "{\"a\":1}\n{\"a\":2}\n{\"a\":9}\n");
  EXPECT_EQ(log.records(), 3);
}

TEST(MetricsLog, ANewRunBeginsANewFile) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.write("metrics.jsonl", "{}\n{}\n");
  MetricsLog log(file, 0);
  EXPECT_EQ(read_file(file), "");
}

TEST(MetricsLog, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(
      testing::error_of([] { MetricsLog("/dev/null/metrics.jsonl", 0); }),
      ::testing::HasSubstr("cannot write '/dev/null/metrics.jsonl'"));
}

TEST(MetricsLog, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  std::filesystem::create_symlink("/dev/full", file);
  EXPECT_THAT(
      testing::error_of([&] {
        MetricsLog log(file, 0);
        log.write({{"a", 1}});
      }),
      ::testing::HasSubstr("cannot write"));
}

}  // namespace
}  // namespace seqconv
