#pragma once

#include <cstdint>

#include "seqconv/base/random.h"
#include "seqconv/ops/seed.h"

namespace seqconv {

/// Hands out a seed to every place that drops something, in the order of the
/// forward pass, so that masks are a function of (seed, update, micro-batch,
/// place). Inactive (evaluation) by default: then nothing is dropped. For a
/// device it makes seeds that lie there, many at a time.
class DropoutPlan {
 public:
  DropoutPlan() = default;
  explicit DropoutPlan(const RandomKey& key, at::Device device = at::kCPU)
      : active_(true), key_(key), device_(device) {}

  bool active() const { return active_; }
  /// The probability to use: p in training, 0 in evaluation.
  double rate(double p) const { return active_ ? p : 0.0; }
  ops::Seed next_seed();

 private:
  bool active_ = false;
  RandomKey key_;
  at::Device device_ = at::kCPU;
  uint64_t place_ = 0;
  at::Tensor seeds_;  ///< int64 on the device, of the places around place_
};

}  // namespace seqconv
