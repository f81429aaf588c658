#include "train/metrics_log.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

TEST(MetricsLog, EveryRecordIsALine) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  MetricsLog log(file, 0);
  log.write({{"update", 1}});
  EXPECT_EQ(read_file(file), "{\"update\":1}\n");  // at once
  log.write({{"update", 2}, {"text", "a\nb"}});
  EXPECT_EQ(log.records(), 2);
  EXPECT_EQ(read_file(file), "{\"update\":1}\n{\"update\":2,\"text\":\"a\\nb\"}\n");
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

TEST(MetricsLog, WhatIsLostOrDamagedIsWarnedOf) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  const auto warnings = [&](const char* content, int64_t records) {
    if (content == nullptr)
      std::filesystem::remove(file);
    else
      folder.write("metrics.jsonl", content);
    set_log_level(LogLevel::kWarning);
    ::testing::internal::CaptureStderr();
    MetricsLog log(file, records);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string name = file.string();
  EXPECT_EQ(warnings("{}\n{}\n{}\n", 2), "");
  EXPECT_EQ(warnings(nullptr, 0), "");
  for (const auto& [content, found] :
       std::vector<std::pair<const char*, int>>{{"{}\n{}\n{\"half", 2}, {"", 0}, {nullptr, 0}})
    EXPECT_THAT(
        warnings(content, 3),
        ::testing::HasSubstr(concat(
            name,
            " holds ",
            found,
            " of the 3 records that the run has written; the others are lost")));
  EXPECT_THAT(
      warnings(
          "{}\n\x7B\"a\"\xBA"
          "1}\n{}\n",
          3),
      ::testing::HasSubstr(name + " is damaged: 1 of its lines is no record"));
  EXPECT_THAT(warnings("[]\n{]\n{}\n", 3), ::testing::HasSubstr("2 of its lines are no records"));
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
  const testing::TemporaryFolder folder;
  MetricsLog log(folder.path() / "metrics.jsonl", 0);
  const testing::FileSizeLimit limit(3);
  EXPECT_THAT(
      testing::error_of([&] {
        log.write({{"a", 1}});
      }),
      ::testing::HasSubstr("cannot write"));
}

}  // namespace
}  // namespace seqconv::internal
