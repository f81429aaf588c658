#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/init.h"

namespace seqconv::internal {

/// Layer normalisation over the last axis, epsilon 1e-5, with weight and bias.
class LayerNormImpl : public torch::nn::Module {
 public:
  explicit LayerNormImpl(int64_t channels, const InitGenerator& generator = {});

  /// x [..., C] -> [..., C].
  at::Tensor forward(const at::Tensor& x) const;
  /// LayerNorm(residual + dropout(x)): the end of a post-norm block.
  at::Tensor add(
      const at::Tensor& x, const at::Tensor& residual, double dropout, DropoutPlan& plan) const;

  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(LayerNorm);

}  // namespace seqconv::internal
