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
///
/// A run of `end` updates, 0 while that is not known, may fall to its end: linear
/// in a straight line to min_learning_rate, cosine of period 0 along half a cosine, and each
/// kind to 0 over the last cooldown_share, as in Zhai et al. 2022 (Scaling Vision
/// Transformers, 3.5). While an end that is needed is not known, the rate warms up as if the
/// warm-up had kUnplannedWarmup updates.
double learning_rate(const ScheduleOptions& options, int64_t updates, int64_t end = 0);

/// Updates of warm-up in a run of `end`.
int64_t warmup_of(const ScheduleOptions& options, int64_t end);

inline constexpr int64_t kUnplannedWarmup = 1000;

}  // namespace seqconv::internal
