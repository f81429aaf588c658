#pragma once

#include <torch/nn/module.h>

#include "seqconv/nn/init.h"
#include "seqconv/ops/linear_cross_entropy.h"

namespace seqconv {

/// Turns hidden states into what is asked (seam 5): a softmax over V words,
/// logits = hidden @ weight^T without bias.
class OutputLayerImpl : public torch::nn::Module {
 public:
  /// `shared` [V, C]: the tied embedding table; undefined: a matrix of its own,
  /// N(0, 1/C).
  OutputLayerImpl(
      int64_t vocabulary,
      int64_t dim,
      const InitGenerator& generator,
      const at::Tensor& shared);

  /// hidden [M, C], target [M] -> summed losses, differentiable, in row chunks.
  ops::CrossEntropySums loss(
      const at::Tensor& hidden,
      const at::Tensor& target,
      const ops::CrossEntropyOptions& options) const;

  /// Natural log-probability of target[i] given hidden row i: [M].
  at::Tensor target_log_probabilities(
      const at::Tensor& hidden,
      const at::Tensor& target) const;

  /// All log-probabilities, [N, V] float32.
  at::Tensor log_probabilities(const at::Tensor& hidden) const;

  int64_t vocabulary() const { return weight_.size(0); }

 private:
  at::Tensor weight_;
};

}  // namespace seqconv
