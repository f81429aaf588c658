#pragma once

#include <cstdint>
#include <optional>

#include "train/run_setup.h"

namespace seqconv::internal {

/// The speed of the first updates of a run, but for the very first.
struct TrainingSpeed {
  int64_t updates = 0;  ///< that were timed
  double seconds_per_update = 0;
  double tokens_per_second = 0;  ///< of the target
};

/// Trains the model of `setup`, a run of one process in a folder that goes away, for a few
/// seconds: nothing is validated and no parameters are written. Nothing, with a line that says
/// so, where an update takes too long to be timed. Interrupted when a signal came.
std::optional<TrainingSpeed> measure_speed(RunSetup setup);

}  // namespace seqconv::internal
