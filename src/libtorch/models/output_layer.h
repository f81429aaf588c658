#pragma once

#include <torch/nn/module.h>

#include "libtorch/nn/adaptive_softmax.h"
#include "libtorch/nn/embedding.h"
#include "libtorch/ops/linear_cross_entropy.h"
#include "model/options.h"

namespace seqconv::internal {

/// Turns hidden states into what is asked: one softmax over V words, logits =
/// hidden @ weight^T without bias, or an adaptive one. A linear map without
/// bias comes before where the output has a width of its own, D.
class OutputLayerImpl : public torch::nn::Module {
 public:
  /// `tied`: the embedding whose words are the softmax's too; empty: matrices
  /// of its own, N(0, 1/D) for one softmax.
  OutputLayerImpl(
      const ModelOptions& options,
      int64_t vocabulary,
      const InitGenerator& generator,
      const Embedding& tied);

  /// hidden [..., C], target [...] -> summed losses, differentiable, in row
  /// chunks. An adaptive softmax has no label smoothing: Error when it is asked
  /// for.
  ops::CrossEntropySums loss(
      const at::Tensor& hidden,
      const at::Tensor& target,
      const ops::CrossEntropyOptions& options,
      DropoutPlan& plan) const;

  /// Natural log-probability of each target given its hidden row, in the shape
  /// of `target`: hidden [..., C], target [...].
  at::Tensor target_log_probabilities(const at::Tensor& hidden, const at::Tensor& target) const;

  /// All log-probabilities of hidden [N, C]: [N, V] float32.
  at::Tensor log_probabilities(const at::Tensor& hidden) const;

 private:
  at::Tensor projected(const at::Tensor& hidden) const;

  at::Tensor projection_;              // [D, C], or undefined
  at::Tensor weight_;                  // [V, D], or undefined
  AdaptiveSoftmax adaptive_{nullptr};  // or empty
};

}  // namespace seqconv::internal
