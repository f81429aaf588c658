#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "libtorch/nn/init.h"

namespace seqconv::internal {

/// x in `type`, where there is one.
inline at::Tensor in_type(const at::Tensor& x, std::optional<at::ScalarType> type) {
  return type ? x.to(*type) : x;
}

/// x [..., in] @ weight^T [in, out] + bias [out], computed in x's type,
/// whatever that of the parameters is: activations of 16 bits meet float32
/// parameters (training.precision), whose gradients are float32 then.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// y = x @ weight^T + bias over the last axis. weight [out, in] Xavier-uniform,
/// bias [out] zero, unless they are drawn by the fan in (semantics.md 8.19).
class LinearImpl : public torch::nn::Module {
 public:
  /// `blocks` stacks that many equal matrices in one (a fused projection):
  /// each gets the fans of its own [out / blocks, in] and `gain`.
  LinearImpl(
      int64_t in,
      int64_t out,
      const InitGenerator& generator = {},
      int64_t blocks = 1,
      double gain = 1.0);

  /// Draws from U(-1/sqrt(in), 1/sqrt(in)), as torch's own Linear begins.
  void draw_weight_by_fan_in(const InitGenerator& generator);
  void draw_bias_by_fan_in(const InitGenerator& generator);

  /// x [..., in] -> [..., out].
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(Linear);

}  // namespace seqconv::internal
