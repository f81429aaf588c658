#include "train/progress.h"

#include <gtest/gtest.h>

#include "train/records.h"

namespace seqconv {
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
      "epoch 2/14 [############------------]  50 %  loss 4.126  3201 tok/s  "
      "0:50 left");
}

TEST(Progress, WhatIsNotKnownIsLeftOut) {
  ProgressStatus status;
  status.batches = 10;
  EXPECT_EQ(progress_bar(status), "epoch 1 [------------------------]   0 %");
  EXPECT_EQ(time_left_text(status), "");
  status.batch = 10;
  EXPECT_EQ(progress_bar(status), "epoch 1 [########################] 100 %");
}

TEST(Progress, WithoutATerminalThereIsNoBar) {
  EXPECT_FALSE(Progress().has_bar());  // ctest's standard error is a pipe
}

TEST(Records, LossesAreBaseTwoPerTargetToken) {
  const CorpusLoss loss =
      corpus_loss(40 * std::log(2.0), 30 * std::log(2.0), 10);
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
  result.bleu = 41.444;
  result.best = true;
  EXPECT_EQ(
      record_line(validation_record(position, result)),
      "validation  epoch 3  update 120  loss 4.000  nll 3.000  perplexity "
      "8.00  BLEU 41.44  (best)");
}

TEST(Records, AWindowOfSkippedUpdatesHasNoLoss) {
  Position position;
  position.logged_skips = 3;
  const Json record = train_record(position);
  EXPECT_FALSE(record.contains("loss_base2"));
  EXPECT_EQ(record["skipped_updates"], 3);
}

}  // namespace
}  // namespace seqconv
