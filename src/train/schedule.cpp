#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace seqconv::internal {
namespace {

/// Where an update stands in its cycle.
struct Cycle {
  double begun = 0;   ///< cycles finished before
  double since = 0;   ///< updates since the cycle began
  double length = 0;  ///< updates of the cycle
};

Cycle find_cycle(const ScheduleOptions& options, double updates) {
  Cycle cycle{0, updates, static_cast<double>(options.period)};
  if (options.period_multiplier == 1) {
    cycle.begun = std::floor(updates / cycle.length);
    cycle.since = updates - cycle.begun * cycle.length;
    return cycle;
  }
  // A logarithm would give the cycle at once, but not its exact boundary.
  while (cycle.since >= cycle.length) {
    cycle.since -= cycle.length;
    cycle.length *= options.period_multiplier;
    ++cycle.begun;
  }
  return cycle;
}

/// From `high` at an angle of 0 to `low` at pi.
double along_cosine(double high, double low, double angle) {
  return low + 0.5 * (high - low) * (1 + std::cos(angle));
}

double cosine_cycles(const ScheduleOptions& options, int64_t after_warmup) {
  const Cycle cycle = find_cycle(options, static_cast<double>(after_warmup));
  const double shrink = std::pow(options.period_shrink, cycle.begun);
  const double low = shrink * options.min_learning_rate;
  const double high = shrink * options.learning_rate;
  return along_cosine(high, low, std::numbers::pi * cycle.since / cycle.length);
}

/// The way from the warm-up to the end that `updates` has made: 0 .. 1.
double progress(int64_t warmup, int64_t updates, int64_t end) {
  if (updates >= end)
    return 1;
  return static_cast<double>(updates - warmup) / static_cast<double>(end - warmup);
}

double rate_before_cooldown(const ScheduleOptions& options, int64_t updates, int64_t end) {
  const int64_t warmup = warmup_of(options, end);
  const double high = options.learning_rate, low = options.min_learning_rate;
  if (updates < warmup)
    return options.warmup_start +
        static_cast<double>(updates) * (high - options.warmup_start) / static_cast<double>(warmup);
  switch (options.kind) {
    case ScheduleKind::kInverseSqrt:
      SEQCONV_CHECK(
          warmup > 0, "schedule.warmup_updates must be > 0 with inverse_sqrt, but got ", warmup);
      return high * std::sqrt(static_cast<double>(warmup) / static_cast<double>(updates));
    case ScheduleKind::kCosine:
      if (options.period > 0)
        return cosine_cycles(options, updates - warmup);
      return along_cosine(high, low, std::numbers::pi * progress(warmup, updates, end));
    case ScheduleKind::kLinear:
      return low + (high - low) * (1 - progress(warmup, updates, end));
  }
  fail("unknown schedule ", static_cast<int>(options.kind));
}

}  // namespace

bool ScheduleOptions::needs_end() const {
  return warmup_share > 0 || cooldown_share > 0 || kind == ScheduleKind::kLinear ||
      (kind == ScheduleKind::kCosine && period == 0);
}

int64_t warmup_of(const ScheduleOptions& options, int64_t end) {
  if (options.warmup_share == 0)
    return options.warmup_updates;
  return std::max(std::llround(options.warmup_share * static_cast<double>(end)), 1LL);
}

double learning_rate(const ScheduleOptions& options, int64_t updates, int64_t end) {
  if (end == 0 && options.needs_end()) {
    ScheduleOptions rising;
    rising.learning_rate = options.learning_rate;
    rising.warmup_start = options.warmup_start;
    rising.warmup_updates =
        options.warmup_share > 0 ? kUnplannedWarmup : std::max<int64_t>(options.warmup_updates, 1);
    return learning_rate(rising, updates);
  }
  const auto cooldown =
      static_cast<int64_t>(std::llround(options.cooldown_share * static_cast<double>(end)));
  const int64_t begins = end - cooldown;
  if (cooldown == 0 || updates <= begins)
    return rate_before_cooldown(options, updates, end);
  return rate_before_cooldown(options, begins, end) * (1 - progress(begins, updates, end));
}

}  // namespace seqconv::internal
