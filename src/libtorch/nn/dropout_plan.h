#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "libtorch/ops/seed.h"

namespace seqconv::internal {

/// Rows of a batch that was split because its whole did not fit into memory:
/// they drop what they would drop in the whole.
struct BatchPart {
  int64_t rows_before = 0;
  int64_t rows = 0;                     ///< its own; 0: all
  std::vector<int64_t> targets_before;  ///< ids of the rows before
};

/// Says how one forward pass is made: what it drops, and in what type it
/// computes. Hands out a seed to every place that drops something, in the order
/// of the forward pass, so that masks are a function of (seed, update,
/// micro-batch, place). Inactive (evaluation) by default: then nothing is
/// dropped. For a device it makes seeds that lie there, many at a time.
class DropoutPlan {
 public:
  DropoutPlan() = default;
  explicit DropoutPlan(const RandomKey& key, at::Device device = at::kCPU, BatchPart part = {})
      : active_(true), key_(key), device_(device), part_(std::move(part)) {}

  bool active() const { return active_; }
  /// The probability to use: p in training, 0 in evaluation.
  double rate(double p) const { return active_ ? p : 0.0; }
  ops::Seed next_seed();
  const BatchPart& part() const { return part_; }

  /// From here on activations, and products with them, are of a type of 16
  /// bits; nothing: of the parameters' type, as they are without this call.
  void set_activation_type(std::optional<at::ScalarType> type) { activation_type_ = type; }
  std::optional<at::ScalarType> activation_type() const { return activation_type_; }

 private:
  bool active_ = false;
  RandomKey key_;
  at::Device device_ = at::kCPU;
  BatchPart part_;
  std::optional<at::ScalarType> activation_type_;
  uint64_t place_ = 0;
  at::Tensor seeds_;  ///< int64 on the device, of the places around place_
};

}  // namespace seqconv::internal
