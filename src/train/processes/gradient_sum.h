#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "libtorch/nn/flat_parameters.h"
#include "train/processes/communicator.h"
#include "train/processes/update_sums.h"

namespace seqconv::internal {

/// Adds up the gradients of an update over the processes of a run, in buckets:
/// those whose gradients are complete travel while the backward pass is still
/// making the others.
class GradientSum {
 public:
  static constexpr int64_t kBucket = 1 << 20;  // elements, 4 MiB

  /// `parameters` holds those of `model`. A bucket has at least
  /// `bucket_elements` elements, but for the last.
  GradientSum(
      torch::nn::Module& model,
      const FlatParameters& parameters,
      std::shared_ptr<Communicator> communicator,
      int64_t bucket_elements = kBucket);
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;
  ~GradientSum();

  /// Tells whether there is no other process.
  bool is_alone() const;

  /// The next backward pass is the last of the update in this process: what it
  /// completes may leave at once.
  void start_with_backward();

  /// Gradients and `sums` become those of all processes.
  void finish(UpdateSums& sums);
  /// The same of sums in a tensor of float64, where the gradients are.
  void finish(const at::Tensor& sums);

 private:
  struct Buckets;
  std::shared_ptr<Buckets> buckets_;  // shared with the hooks of the model
};

}  // namespace seqconv::internal
