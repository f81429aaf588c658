#include "train/schedule.h"

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

double cosine_rate(const ScheduleOptions& options, int64_t after_warmup) {
  const Cycle cycle = find_cycle(options, static_cast<double>(after_warmup));
  const double shrink = std::pow(options.period_shrink, cycle.begun);
  const double low = shrink * options.min_learning_rate;
  const double high = shrink * options.learning_rate;
  return low + 0.5 * (high - low) * (1 + std::cos(std::numbers::pi * cycle.since / cycle.length));
}

}  // namespace

double learning_rate(const ScheduleOptions& options, int64_t updates) {
  const int64_t warmup = options.warmup_updates;
  if (updates < warmup)
    return options.warmup_start +
        static_cast<double>(updates) * (options.learning_rate - options.warmup_start) /
        static_cast<double>(warmup);
  switch (options.kind) {
    case ScheduleKind::kInverseSqrt:
      SEQCONV_CHECK(
          warmup > 0, "schedule.warmup_updates must be > 0 with inverse_sqrt, but got ", warmup);
      return options.learning_rate *
          std::sqrt(static_cast<double>(warmup) / static_cast<double>(updates));
    case ScheduleKind::kCosine:
      return cosine_rate(options, updates - warmup);
  }
  fail("unknown schedule ", static_cast<int>(options.kind));
}

}  // namespace seqconv::internal
