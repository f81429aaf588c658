#pragma once

#include <cstdint>

#include "train/options.h"

namespace seqconv::internal {

/// The learning rate once `updates` updates have been made: warm-up is linear
/// from warmup_start at 0 to learning_rate at warmup_updates. After it,
/// inverse_sqrt falls as 1/sqrt(updates); cosine falls along half a cosine to
/// min_learning_rate and starts again, each cycle period_multiplier as long and
/// period_shrink as high as the one before (semantics.md 3.1, 8.11). The update
/// with number n, from 1, is made with learning_rate(options, n - 1).
double learning_rate(const ScheduleOptions& options, int64_t updates);

}  // namespace seqconv::internal
