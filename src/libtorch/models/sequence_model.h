#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/linear_cross_entropy.h"
#include "model/options.h"
#include "text/corpus/batch.h"

namespace seqconv::internal {

/// Says what the loss of a batch is.
struct LossOptions : ops::CrossEntropyOptions {
  /// Weight of the loss of a batch's links (guided_alignment.h); 0: there is none.
  double guided_alignment = 0;
};

/// Summed losses of a batch.
struct LossSums : ops::CrossEntropySums {
  /// [] what is minimised, differentiable: the loss, and with guided alignment its weighted
  /// loss. Its gradient is the scaled one where a scale is given.
  at::Tensor objective;
  at::Tensor alignment;        ///< [] of the tokens that have links; undefined: none was asked for
  int64_t aligned_tokens = 0;  ///< their number
};

/// The model as training, validation and scoring see it, whatever its task.
class SequenceModel : public torch::nn::Module {
 public:
  /// Summed losses of a batch (teacher forcing), differentiable.
  virtual LossSums loss(
      const Batch& batch, const LossOptions& options, DropoutPlan& plan) const = 0;
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
