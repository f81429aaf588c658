#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/linear_cross_entropy.h"
#include "model/options.h"
#include "text/corpus/batch.h"

namespace seqconv::internal {

/// The model as training, validation and scoring see it, whatever its task.
class SequenceModel : public torch::nn::Module {
 public:
  /// Summed losses of a batch (teacher forcing), differentiable.
  virtual ops::CrossEntropySums loss(
      const Batch& batch, const ops::CrossEntropyOptions& options, DropoutPlan& plan) const = 0;
  /// Natural log-probability of every target token [B, T], 0 at padding.
  virtual at::Tensor target_log_probabilities(const Batch& batch) const = 0;

  virtual const ModelOptions& options() const = 0;
  /// The device of its parameters.
  virtual at::Device device() const = 0;

  /// Number of parameters, tied ones once.
  int64_t parameter_count() const {
    int64_t count = 0;
    for (const auto& parameter : parameters())
      count += parameter.numel();
    return count;
  }
};

}  // namespace seqconv::internal
