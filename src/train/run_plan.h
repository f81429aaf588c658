#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "train/options.h"
#include "train/position.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// The updates that max_updates and max_epochs allow, where an epoch has `batches`; 0 = no limit.
int64_t counted_end(const TrainingOptions& training, int64_t batches);

/// A run as the pace of its first updates lets one expect it.
struct RunForecast {
  int64_t updates = 0;  ///< 0: no limit says it
  double epochs = 0;
  double seconds = 0;  ///< with validations, without preparing text and data
  int64_t warmup = 0;  ///< of the updates
};

/// `pace`: seconds of an update, above 0; `batches` and `valid_batches` as of RunPlan.
RunForecast forecast_run(
    const TrainConfig& config, int64_t batches, int64_t valid_batches, double pace);

/// The end of a run: its limits, and the number of updates by which a schedule falls to it.
///
/// Limits that count updates say it from the start. Minutes say it once the pace is known, after
/// the first seconds; the plan is in the position then, so that a resumed run repeats it. It is
/// made anew where limits have changed, where a tenth of it would be cut off as the pace has
/// fallen, and before its last tenth where it leaves a tenth of the time unused. The first process
/// decides for all.
class RunPlan {
 public:
  /// `position` outlives it and is what a plan is written to; `batches` and `valid_batches`
  /// are those of an epoch and of a validation, 0 without one.
  RunPlan(
      const TrainConfig& config,
      Position& position,
      int64_t batches,
      int64_t valid_batches,
      std::function<double()> clock);

  /// The updates of the run, for learning_rate(); 0 while they are not known.
  int64_t end() const { return position_.planned_updates; }

  /// Looks at the clock before the first update and after each: all processes call it then.
  void look(Communicator& processes);

  /// Seconds of the run until now, with all that it did, and earlier parts of it.
  double elapsed() const { return elapsed_before_ + clock_(); }

  /// Notes how long a validation took, in seconds.
  void add_validation(double seconds) {
    validation_ = seconds;
    validating_ += seconds;
  }

  /// Why the run is over: a limit's key; "" while it is not.
  std::string reason_to_stop() const;

  /// Seconds left of training.max_minutes; -1 without it.
  double seconds_left() const;

  /// Seconds that a validation will take: those of the last, else a guess by the pace.
  double validation_seconds() const;

 private:
  void measure_pace();
  bool knows_pace() const;
  /// The updates that fit into the time left, beside the validations among them.
  int64_t updates_that_fit() const;
  /// Returns the end that the run should have now.
  int64_t decide() const;
  void plan(int64_t end);
  /// Says of a run's first plan if little of it is training at the full rate, or on the whole text.
  void judge(int64_t end) const;

  const TrainConfig& config_;
  Position& position_;
  int64_t batches_;
  int64_t valid_batches_;
  std::function<double()> clock_;
  double elapsed_before_;  // by earlier parts of the run
  double pace_ = 0;        // seconds of an update, 0: not known
  // Updates and seconds of this process that the pace is made of.
  int64_t measured_updates_ = -1;
  double measured_seconds_ = 0;
  int64_t last_update_;  // up to which it was measured
  double last_look_ = 0;
  double validating_ = 0;   // seconds since that look
  double validation_ = -1;  // the last one's seconds, -1: none yet
};

}  // namespace seqconv::internal
