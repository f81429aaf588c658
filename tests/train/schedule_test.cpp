#include "train/schedule.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/golden_case.h"

namespace seqconv::internal {
namespace {

ScheduleOptions cosine(int64_t warmup, int64_t period) {
  ScheduleOptions options;
  options.kind = ScheduleKind::kCosine;
  options.learning_rate = 1;
  options.min_learning_rate = 0.25;
  options.warmup_start = 0;
  options.warmup_updates = warmup;
  options.period = period;
  return options;
}

/// Up over a tenth of the run, and down to its end.
ScheduleOptions line() {
  ScheduleOptions options;
  options.kind = ScheduleKind::kLinear;
  options.learning_rate = 1;
  options.warmup_start = 0;
  options.warmup_share = 0.1;
  return options;
}

ScheduleOptions from_case(const testing::GoldenCase& golden) {
  ScheduleOptions options;
  options.warmup_start = golden.number("warmup_init_lr");
  options.warmup_updates = static_cast<int64_t>(golden.number("warmup_updates"));
  if (golden.text("op") == "lr_inverse_sqrt") {
    options.kind = ScheduleKind::kInverseSqrt;
    options.learning_rate = golden.number("lr");
    return options;
  }
  options.kind = ScheduleKind::kCosine;
  options.learning_rate = golden.number("max_lr");
  options.min_learning_rate = golden.number("min_lr");
  options.period = static_cast<int64_t>(golden.number("period_updates"));
  options.period_multiplier = golden.number("period_mult");
  options.period_shrink = golden.number("lr_shrink");
  return options;
}

TEST(ScheduleGolden, EveryCaseIsMet) {
  for (const char* const op : {"lr_inverse_sqrt", "lr_cosine"})
    for (const auto& file : testing::golden_files(op)) {
      const testing::GoldenCase golden(file);
      const ScheduleOptions options = from_case(golden);
      const auto steps = golden.integers("step");
      const auto want = golden.values("lr");
      ASSERT_EQ(steps.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(learning_rate(options, steps[i]), want[i], 1e-12 * std::abs(want[i]))
            << file << " at " << steps[i];
    }
}

TEST(Schedule, WarmUpIsLinearFromItsStartToTheHighestRate) {
  ScheduleOptions options;
  options.learning_rate = 1;
  options.warmup_start = 0.5;
  options.warmup_updates = 10;
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 5), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 40), 0.5);
}

TEST(Schedule, EveryCosineCycleBeginsExactlyAtItsMaximum) {
  for (const double multiplier : {1.0, 1.1, 1.5, 2.0, 3.0}) {
    ScheduleOptions options = cosine(7, 10);
    options.period_multiplier = multiplier;
    options.period_shrink = 0.5;
    double begins = 7;  // found by walking, update by update
    double length = 10;
    double highest = 1;
    for (int cycle = 0; cycle < 5; ++cycle) {
      if (begins == std::floor(begins)) {
        EXPECT_DOUBLE_EQ(learning_rate(options, static_cast<int64_t>(begins)), highest)
            << "multiplier " << multiplier << ", cycle " << cycle;
      }
      const auto last = static_cast<int64_t>(std::ceil(begins + length)) - 1;
      EXPECT_LT(learning_rate(options, last), highest * 0.5);
      begins += length;
      length *= multiplier;
      highest *= 0.5;
    }
  }
}

TEST(Schedule, CosineWithoutWarmUpBeginsAtTheMaximum) {
  EXPECT_DOUBLE_EQ(learning_rate(cosine(0, 10), 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine(0, 10), 5), 0.625);
}

TEST(Schedule, ALineFallsFromTheWarmUpToTheRunsEnd) {
  ScheduleOptions options = line();
  EXPECT_TRUE(options.needs_end());
  EXPECT_EQ(warmup_of(options, 200), 20);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10, 200), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 20, 200), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 110, 200), 0.5);
  EXPECT_NEAR(learning_rate(options, 199, 200), 1.0 / 180, 1e-12);
  EXPECT_EQ(learning_rate(options, 250, 200), 0);
  options.min_learning_rate = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(options, 110, 200), 0.75);
}

TEST(Schedule, ACosineWithoutPeriodIsHalfAWaveToTheRunsEnd) {
  const ScheduleOptions options = cosine(10, 0);
  EXPECT_TRUE(options.needs_end());
  EXPECT_FALSE(cosine(10, 1).needs_end());
  EXPECT_DOUBLE_EQ(learning_rate(options, 10, 110), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 60, 110), 0.625);
  EXPECT_DOUBLE_EQ(learning_rate(options, 110, 110), 0.25);
}

TEST(Schedule, ACoolDownFallsToNothingWhateverTheKind) {
  ScheduleOptions options;
  options.learning_rate = 1;
  options.warmup_updates = 4;
  options.cooldown_share = 0.25;
  EXPECT_DOUBLE_EQ(learning_rate(options, 64, 100), 0.25);
  const double before = learning_rate(options, 75, 100);
  EXPECT_DOUBLE_EQ(before, std::sqrt(4.0 / 75));
  EXPECT_DOUBLE_EQ(learning_rate(options, 80, 100), before * 0.8);
  EXPECT_EQ(learning_rate(options, 100, 100), 0);
  options.kind = ScheduleKind::kCosine;
  options.period = 1000;
  EXPECT_NEAR(learning_rate(options, 99, 100), learning_rate(options, 75, 100) / 25, 1e-12);
}

TEST(Schedule, BeforeTheEndIsKnownTheRateRises) {
  ScheduleOptions options = line();
  EXPECT_DOUBLE_EQ(learning_rate(options, 5), 5.0 / kUnplannedWarmup);
  options.warmup_share = 0;
  options.warmup_updates = 50;
  EXPECT_DOUBLE_EQ(learning_rate(options, 5), 0.1);
}

TEST(Schedule, InverseRootWithoutWarmUpIsRefused) {
  ScheduleOptions options;
  options.warmup_updates = 0;
  EXPECT_EQ(
      testing::error_of([&] { learning_rate(options, 1); }),
      "schedule.warmup_updates must be > 0 with inverse_sqrt, but got 0");
}

}  // namespace
}  // namespace seqconv::internal
