#pragma once

#include <cstdint>

#include "seqconv/base/random.h"

namespace seqconv {

/// Hands out a seed to every place that drops something, in the order of the
/// forward pass, so that masks are a function of (seed, update, micro-batch,
/// place). Inactive (evaluation) by default: then nothing is dropped.
class DropoutPlan {
 public:
  DropoutPlan() = default;
  explicit DropoutPlan(const RandomKey& key) : active_(true), key_(key) {}

  bool active() const { return active_; }
  /// The probability to use: p in training, 0 in evaluation.
  double rate(double p) const { return active_ ? p : 0.0; }
  uint64_t next_seed() { return place_seed(key_, place_++); }

 private:
  bool active_ = false;
  RandomKey key_;
  uint64_t place_ = 0;
};

}  // namespace seqconv
