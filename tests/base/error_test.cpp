#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/log.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using testing::error_of;

TEST(Errors, CarryTheirPartsAndTheirKind) {
  EXPECT_EQ(
      error_of([] { SEQCONV_CHECK(1 > 2, "n must be > ", 2, ", got ", 1.5); }),
      "n must be > 2, got 1.5");
  EXPECT_EQ(error_of<UsageError>([] { fail_usage("no ", 'k'); }), "no k");
  EXPECT_NO_THROW(SEQCONV_CHECK(true, "unused"));
  try {
    throw Interrupted(SIGTERM, "stopped");
  } catch (const Error& error) {
    EXPECT_EQ(dynamic_cast<const Interrupted&>(error).signal(), SIGTERM);
  }
}

TEST(NearestWord, FindsMisspellings) {
  const std::vector<std::string> keys = {"dropout", "heads", "kernels", "learning_rate", "glu"};
  EXPECT_EQ(nearest_word("droput", keys), "dropout");
  EXPECT_EQ(nearest_word("dorpout", keys), "dropout");
  EXPECT_EQ(nearest_word("Heads", keys), "heads");
  EXPECT_EQ(nearest_word("learningrate", keys), "learning_rate");
  EXPECT_EQ(nearest_word("gul", keys), "glu");
  EXPECT_EQ(nearest_word("kernels", keys), "kernels");
}

TEST(NearestWord, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("beam", {"dropout", "kernels"}), "");
  EXPECT_EQ(nearest_word("x", {"lr", "ab"}), "");
  EXPECT_EQ(nearest_word("", {"lr", "abc"}), "");
  EXPECT_EQ(nearest_word("dropout", {}), "");
}

TEST(NearestWord, IsQuickOnHostileWords) {
  const std::string huge(1 << 20, 'a');
  EXPECT_EQ(nearest_word(huge, {"dropout", std::string(1 << 18, 'b')}), "");
}

TEST(Log, WritesWhatTheLevelAllowsToStandardErrorAlone) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  log_info("one ", 1);
  log_warning("two");
  set_log_level(LogLevel::kWarning);
  log_info("hidden");
  log_warning("three");
  set_log_level(LogLevel::kError);
  log_warning("hidden");
  log_line(LogLevel::kError, "four");
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "one 1\nwarning: two\nwarning: three\nerror: four\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(Log, AMessageIsOneLineOfUtf8WhateverItQuotes) {
  ::testing::internal::CaptureStderr();
  log_warning("'a\xFF\nb\r\tc\x1B[31m\xC2\x85\xE2\x80\xA8\xE2\x80\xA9z'");
  log_info("gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "warning: 'a\xEF\xBF\xBD b  c [31m   z'\ngr\xC3\xBC\xC3\x9F\n");
}

}  // namespace
}  // namespace seqconv::internal
