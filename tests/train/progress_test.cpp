#include "train/progress.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"

#include "base/options.h"
#include "train/records.h"

namespace seqconv::internal {
namespace {

TEST(Progress, DurationsReadLikeAClock) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(754), "12:34");
  EXPECT_EQ(duration_text(3 * 3600 + 300), "3:05:00");
  EXPECT_EQ(duration_text(2 * 86400 + 3 * 3600 + 300), "2d 03:05");
}

TEST(Progress, TheBarShowsTheShareTheRateAndTheTimeLeft) {
  ProgressStatus status;
  status.epoch = 2;
  status.max_epochs = 14;
  status.batch = 257;
  status.batches = 514;
  status.updates_left = 100;
  status.seconds_per_update = 0.5;
  status.loss_base2 = 4.1264;
  status.tokens_per_second = 3201.4;
  EXPECT_EQ(
      progress_bar(status),
      "epoch 2/14 [############------------]  50 %  loss 4.126  3201 tok/s  0:50 left");
}

TEST(Progress, WhatIsNotKnownIsLeftOut) {
  ProgressStatus status;
  status.batches = 10;
  EXPECT_EQ(progress_bar(status), "epoch 1 [------------------------]   0 %");
  EXPECT_EQ(time_left_text(status), "");
  status.batch = 10;
  EXPECT_EQ(progress_bar(status), "epoch 1 [########################] 100 %");
}

/// Standard error as a terminal of the given kind, or as a pipe.
class FakeStandardError {
 public:
  FakeStandardError(bool terminal, const char* term, const char* no_color)
      : old_(::dup(STDERR_FILENO)) {
    int ends[2];  // what is read, what standard error becomes
    EXPECT_EQ(
        terminal ? ::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) : ::pipe(ends), 0);
    read_ = ends[0];
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    ::setenv("TERM", term, 1);
    ::setenv("NO_COLOR", no_color, 1);
  }
  ~FakeStandardError() {
    ::dup2(old_, STDERR_FILENO);
    ::close(old_);
    ::close(read_);
    ::unsetenv("NO_COLOR");
  }
  std::string read() {
    char text[4096];
    const ssize_t size = ::read(read_, text, sizeof text);
    return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  int old_;
  int read_ = -1;
};

TEST(Progress, ABarIsOnlyForATerminalThatCanDrawIt) {
  set_log_level(LogLevel::kInfo);
  const auto has_bar = [](bool terminal, const char* term, const char* color) {
    const FakeStandardError fake(terminal, term, color);
    return Progress().has_bar();
  };
  EXPECT_TRUE(has_bar(/*terminal=*/true, "xterm", ""));
  EXPECT_FALSE(has_bar(/*terminal=*/true, "dumb", ""));
  EXPECT_FALSE(has_bar(/*terminal=*/true, "xterm", "1"));
  EXPECT_FALSE(has_bar(/*terminal=*/false, "xterm", ""));
  set_log_level(LogLevel::kWarning);
  EXPECT_FALSE(has_bar(/*terminal=*/true, "xterm", ""));
  set_log_level(LogLevel::kInfo);
}

TEST(Progress, LinesTakeThePlaceOfTheBar) {
  set_log_level(LogLevel::kInfo);
  FakeStandardError fake(/*terminal=*/true, "xterm", "");
  Progress progress;
  ProgressStatus status;
  status.batches = 10;
  const std::string bar = progress_bar(status);
  progress.show(status);
  EXPECT_EQ(fake.read(), concat("\r", bar));
  progress.line("validated");
  std::string rest = fake.read();
  while (rest.find('\n') == std::string::npos)
    rest += fake.read();
  EXPECT_EQ(rest, concat("\r", std::string(bar.size(), ' '), "\rvalidated\r\n"));
}

TEST(Records, LossesAreBaseTwoPerTargetToken) {
  const CorpusLoss loss = corpus_loss(40 * std::log(2.0), 30 * std::log(2.0), 10);
  EXPECT_DOUBLE_EQ(loss.loss_base2, 4);
  EXPECT_DOUBLE_EQ(loss.nll_base2, 3);
  EXPECT_DOUBLE_EQ(loss.perplexity, 8);
}

TEST(Records, TheLineSaysWhatTheRecordHolds) {
  Position position;
  position.epoch = 3;
  position.update = 120;
  ValidationResult result;
  result.loss = corpus_loss(40 * std::log(2.0), 30 * std::log(2.0), 10);
  result.scores = {
      {MetricKind::kBleu, 41.444, "nrefs:1|tok:13a"}, {MetricKind::kChrf, 60, "nrefs:1|nc:6"}};
  result.best = true;
  EXPECT_EQ(
      record_line(validation_record(position, result)),
      "validation  epoch 3  update 120  loss 4.000  nll 3.000  perplexity 8.00  BLEU 41.44  chrF2 "
      "60.00  (best)");
  EXPECT_EQ(
      validation_record(position, result)["signatures"],
      Json({{"bleu", "nrefs:1|tok:13a"}, {"chrf", "nrefs:1|nc:6"}}));
}

TEST(Records, TheLossOfAnAlignmentIsBaseTwoPerAlignedToken) {
  Position position;
  position.logged = {.loss = 1, .nll = 1, .alignment = 3 * std::log(2.0), .target_tokens = 9};
  EXPECT_FALSE(train_record(position).contains("alignment_base2"));
  position.logged.aligned_tokens = 2;
  EXPECT_DOUBLE_EQ(train_record(position)["alignment_base2"].get<double>(), 1.5);
  EXPECT_THAT(record_line(train_record(position)), ::testing::HasSubstr("  alignment 1.500  "));
}

TEST(Records, AWindowOfSkippedUpdatesHasNoLoss) {
  Position position;
  position.logged_skips = 3;
  const Json record = train_record(position);
  EXPECT_FALSE(record.contains("loss_base2"));
  EXPECT_EQ(record["skipped_updates"], 3);
}

}  // namespace
}  // namespace seqconv::internal
