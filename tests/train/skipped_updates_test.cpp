#include <gmock/gmock.h>

#include <limits>

#include "base/elements.h"
#include "base/log.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "support/errors.h"
#include "tiny_task.h"
#include "train/checkpoint.h"

/// Updates that cannot be made, and runs that make no other.
namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

class SkippedUpdates : public testing::TinyTask {};

TEST_F(SkippedUpdates, OneBadGradientSkipsItsUpdateOnly) {
  config_.training.accumulate = 2;
  config_.training.max_updates = 4;
  const auto spoil = [&](const RunSetup& setup, const Position& position) {
    if (position.update == 1 && position.micro_batch == 1)
      setup.task->model()->parameters()[0].mutable_grad().fill_(
          std::numeric_limits<float>::quiet_NaN());
  };
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kWarning);
  train(request("run"), spoil);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("update 2 is skipped: its gradient (norm"));
  const auto trains = records("run", "train");
  ASSERT_EQ(trains.size(), 4u);
  EXPECT_EQ(trains[0]["skipped_updates"], 0);
  EXPECT_EQ(trains[1]["skipped_updates"], 1);
  EXPECT_FALSE(trains[1].contains("loss_base2"));
  EXPECT_EQ(trains[2]["skipped_updates"], 0);
  EXPECT_TRUE(std::isfinite(trains[3]["loss_base2"].get<double>()));
}

TEST_F(SkippedUpdates, AGradientWhoseSquareOverflowsSkipsItsUpdateUnlessItIsClipped) {
  config_.training.accumulate = 2;
  config_.training.max_updates = 4;
  config_.training.save_every = 1;
  config_.schedule.warmup_updates = 1;  // more would be warned of
  const auto enlarge = [&](const RunSetup& setup, const Position& position) {
    if (position.update == 1 && position.micro_batch == 1)
      setup.task->model()->parameters()[0].mutable_grad().fill_(1e25f);
  };
  for (const double clip_norm : {0.0, 1.0}) {
    config_.optimizer.clip_norm = clip_norm;
    const std::string run = concat("run", clip_norm);
    ::testing::internal::CaptureStderr();
    set_log_level(LogLevel::kWarning);
    train(request(run), enlarge);
    const std::string said = ::testing::internal::GetCapturedStderr();
    if (clip_norm == 0) {
      EXPECT_THAT(said, HasSubstr("update 2 is skipped: its gradient (norm "));
      EXPECT_THAT(said, HasSubstr("too large to be squared in float32"));
    } else {
      EXPECT_EQ(said, "");
    }
    EXPECT_EQ(records(run, "train")[1]["skipped_updates"], clip_norm == 0 ? 1 : 0);
    const SafetensorsReader state(path(run) / "training/state.safetensors");
    EXPECT_NO_THROW(require_finite(state));
  }
}

TEST_F(SkippedUpdates, TenInARowEndTheRunWithAdviceAndTheLastStateStays) {
  config_.training.save_every = 2;
  config_.training.max_updates = 100;
  const auto spoil = [&](const RunSetup& setup, const Position& position) {
    if (position.update == 5) {
      at::NoGradGuard no_grad;
      setup.task->model()->parameters()[0].fill_(std::numeric_limits<float>::infinity());
    }
  };
  const std::string message = testing::error_of([&] { train(request("run"), spoil); });
  EXPECT_THAT(message, HasSubstr("training has diverged: 10 updates in a row"));
  EXPECT_THAT(message, HasSubstr("Lower schedule.learning_rate (0.003)"));
  EXPECT_THAT(message, HasSubstr("optimizer.clip_norm"));
  EXPECT_THAT(message, HasSubstr("schedule.warmup_updates"));
  EXPECT_NO_THROW(load_model(path("run")));
  EXPECT_NO_THROW(read_state(path("run") / "training" / "state.safetensors"));
  config_.training.max_updates = 5;
  TrainRequest again = request("run");
  again.resume = true;
  EXPECT_NO_THROW(train_model(again));
}

}  // namespace
}  // namespace seqconv::internal
