#include "train/run_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/log.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

/// A run of ten minutes whose updates take as long as a test says; an epoch has 100, and a
/// validation 30 batches.
class Plan : public ::testing::Test {
 protected:
  Plan() {
    set_log_level(LogLevel::kError);
    config_.training.max_minutes = 10;
    config_.schedule.kind = ScheduleKind::kLinear;
    config_.schedule.warmup_share = 0.1;
  }

  RunPlan plan() {
    now_ = 0;
    return {config_, position_, 100, 30, [this] { return now_; }};
  }

  /// Makes updates of `pace` seconds until the run is over, or update `until`.
  std::string run(RunPlan& plan, double pace, int64_t until = 1 << 20) {
    std::string reason;
    while (reason.empty() && position_.update < until) {
      now_ += pace;
      position_.seconds += pace;
      ++position_.update;
      if (position_.batch == 100) {
        position_.batch = 0;
        ++position_.epoch;
      }
      ++position_.batch;
      if (position_.batch == 100) {
        now_ += 10 * pace;
        plan.add_validation(10 * pace);
      }
      plan.look(one_);
      reason = plan.reason_to_stop();
    }
    return reason;
  }

  TrainConfig config_;
  Position position_;
  SingleProcess one_;
  double now_ = 0;
};

TEST_F(Plan, IsMadeAfterTheFirstSecondsAndKept) {
  RunPlan plan = this->plan();
  EXPECT_EQ(plan.seconds_left(), 600);
  run(plan, 0.5, 12);
  EXPECT_EQ(plan.end(), 0) << "while five seconds are not measured";
  run(plan, 0.5, 13);
  const int64_t end = plan.end();
  EXPECT_NEAR(static_cast<double>(end), 600 / 0.55, 15);
  EXPECT_EQ(run(plan, 0.5), "max_minutes");
  EXPECT_EQ(plan.end(), end);
  EXPECT_EQ(position_.update, end);
  EXPECT_LE(position_.elapsed, 600);
  EXPECT_GE(position_.elapsed, 570);
}

TEST_F(Plan, IsShorterWhereTheMachineBecomesSlower) {
  RunPlan plan = this->plan();
  run(plan, 0.1, 2000);
  const int64_t before = plan.end();
  EXPECT_EQ(run(plan, 0.3), "max_minutes");
  EXPECT_LT(plan.end(), before * 8 / 10);
  EXPECT_EQ(position_.update, plan.end());
  EXPECT_LE(position_.elapsed, 600);
  EXPECT_GE(position_.elapsed, 540);
}

TEST_F(Plan, IsLongerWhereTheFirstSecondsWereSlow) {
  RunPlan plan = this->plan();
  run(plan, 0.5, 30);
  const int64_t before = plan.end();
  EXPECT_EQ(run(plan, 0.1), "max_minutes");
  EXPECT_GT(plan.end(), 3 * before);
  EXPECT_LE(position_.elapsed, 600);
  EXPECT_GE(position_.elapsed, 450);
}

TEST_F(Plan, HoldsThroughSlowSpells) {
  RunPlan plan = this->plan();
  std::string reason;
  for (double until = 50; reason.empty(); until += 60) {
    while (reason.empty() && now_ < until)
      reason = run(plan, 0.1, position_.update + 1);
    while (reason.empty() && now_ < until + 10)
      reason = run(plan, 0.3, position_.update + 1);
  }
  EXPECT_EQ(reason, "max_minutes");
  EXPECT_LE(position_.elapsed, 600);
  EXPECT_GE(position_.elapsed, 540);
}

TEST_F(Plan, IsThatOfTheStateInAResumedRun) {
  {
    RunPlan plan = this->plan();
    run(plan, 0.5, 400);
  }
  const int64_t end = position_.planned_updates;
  RunPlan plan = this->plan();
  EXPECT_EQ(plan.end(), end);
  EXPECT_NEAR(plan.seconds_left(), 600 - position_.elapsed, 1e-9);
  plan.look(one_);
  EXPECT_EQ(plan.end(), end);
  EXPECT_EQ(run(plan, 0.5), "max_minutes");
  EXPECT_EQ(position_.update, end);
}

TEST_F(Plan, IsMadeAnewForOtherLimits) {
  {
    RunPlan plan = this->plan();
    EXPECT_EQ(run(plan, 0.5), "max_minutes");
  }
  const int64_t end = position_.planned_updates;
  {
    RunPlan plan = this->plan();
    plan.look(one_);
    EXPECT_EQ(plan.reason_to_stop(), "max_minutes") << "nothing is left to do";
  }
  config_.training.max_minutes = 20;
  RunPlan plan = this->plan();
  plan.look(one_);
  EXPECT_NEAR(static_cast<double>(plan.end()), 2.0 * static_cast<double>(end), 60);
  EXPECT_EQ(plan.reason_to_stop(), "");
}

TEST_F(Plan, HasNoMoreThanTheCountedUpdates) {
  config_.training.max_epochs = 3;
  RunPlan plan = this->plan();
  EXPECT_EQ(run(plan, 0.5), "max_epochs");
  EXPECT_EQ(plan.end(), 300);
}

TEST_F(Plan, IsKnownFromTheStartWithoutMinutes) {
  config_.training.max_minutes = 0;
  config_.training.max_updates = 250;
  config_.training.max_epochs = 2;
  RunPlan plan = this->plan();
  EXPECT_EQ(plan.end(), 200);
  EXPECT_EQ(plan.seconds_left(), -1);
}

TEST_F(Plan, OfAScheduleThatNeedsNoneLeavesAllTheTime) {
  config_.schedule = {};
  RunPlan plan = this->plan();
  run(plan, 0.5, 100);
  EXPECT_EQ(run(plan, 0.1), "max_minutes");
  EXPECT_GE(position_.elapsed, 595);
  EXPECT_LE(position_.elapsed, 600);
}

/// Takes down the words of a plan.
class PlanWords : public Plan {
 protected:
  std::string said_by(const std::function<void()>& work) {
    set_log_level(LogLevel::kInfo);
    ::testing::internal::CaptureStderr();
    work();
    set_log_level(LogLevel::kError);
    return ::testing::internal::GetCapturedStderr();
  }
  std::string said_at_the_start() {
    return said_by([&] {
      RunPlan plan = this->plan();
      plan.look(one_);
      run(plan, 0.1, 3);
    });
  }
};

TEST_F(PlanWords, WarnOnceOfAWarmUpThatTakesMoreThanAThirdOfCountedUpdates) {
  config_.training.max_minutes = 0;
  config_.training.max_updates = 1000;
  config_.schedule.warmup_share = 0;
  config_.schedule.warmup_updates = 334;
  const std::string said = said_at_the_start();
  const auto place = said.find("warning: warm-up takes 334 of the run's 1000 updates");
  EXPECT_NE(place, std::string::npos) << said;
  EXPECT_NE(said.find("schedule.warmup_updates"), std::string::npos) << said;
  EXPECT_EQ(said.find("warm-up", place + 20), std::string::npos) << said;
  position_ = {};
  config_.schedule.warmup_updates = 333;
  EXPECT_EQ(said_at_the_start(), "");
  // A run that goes on was warned.
  position_ = {};
  config_.schedule.warmup_updates = 900;
  position_.update = 3;
  EXPECT_EQ(said_at_the_start(), "");
}

TEST_F(PlanWords, TellOfATextThatIsSeenLessThanThreeTimes) {
  config_.training.max_minutes = 0;
  config_.training.max_updates = 140;
  EXPECT_NE(
      said_at_the_start().find("the run sees the training text only 1.4 times: a larger "
                               "training.max_updates, or a smaller model (model.dim)"),
      std::string::npos);
  position_ = {};
  config_.training.max_updates = 300;
  EXPECT_EQ(said_at_the_start(), "");
  position_ = {};
  config_.training.max_updates = 0;
  config_.training.max_epochs = 2;
  EXPECT_EQ(said_at_the_start(), "") << "as it was told";
  position_ = {};
  config_.training.max_epochs = 0;
  config_.training.max_minutes = 10;
  const std::string said = said_by([&] {
    RunPlan plan = this->plan();
    run(plan, 4, 20);
  });
  EXPECT_NE(said.find("only 1.3 times: a larger training.max_minutes"), std::string::npos) << said;
}

TEST(RunForecast, FollowsFromPaceAndLimits) {
  TrainConfig config;
  config.training.max_epochs = 0;
  config.training.max_updates = 0;
  EXPECT_EQ(forecast_run(config, 100, 30, 0.5).updates, 0) << "nothing ends it";
  // 30 batches of validation cost as 10 updates, an epoch's 50 s become 55.
  config.training.max_minutes = 10;
  config.schedule.warmup_updates = 54;
  RunForecast forecast = forecast_run(config, 100, 30, 0.5);
  EXPECT_EQ(forecast.updates, 1081);  // (600 - 5) / 0.55
  EXPECT_NEAR(forecast.epochs, 10.81, 1e-9);
  EXPECT_NEAR(forecast.seconds, 600, 1);
  EXPECT_EQ(forecast.warmup, 54);
  config.training.max_epochs = 3;
  forecast = forecast_run(config, 100, 30, 0.5);
  EXPECT_EQ(forecast.updates, 300);
  EXPECT_NEAR(forecast.seconds, 300 * 0.55 + 5, 1e-9);
  config.schedule.warmup_updates = 4000;
  EXPECT_EQ(forecast_run(config, 100, 30, 0.5).warmup, 300);
}

/// One of two processes, to which the first gives `said`.
class Second : public SingleProcess {
 public:
  explicit Second(int64_t said) : said_(said) {}
  int64_t rank() const override { return 1; }
  int64_t size() const override { return 2; }
  void broadcast(std::span<std::byte> bytes, int64_t /*root*/) override {
    ASSERT_EQ(bytes.size(), sizeof said_);
    std::memcpy(bytes.data(), &said_, sizeof said_);
  }

 private:
  int64_t said_;
};

TEST_F(Plan, IsTheFirstProcesss) {
  RunPlan plan = this->plan();
  Second second(77);
  position_.update = 5;
  plan.look(second);
  EXPECT_EQ(plan.end(), 77);
}

}  // namespace
}  // namespace seqconv::internal
