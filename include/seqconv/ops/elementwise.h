#pragma once

#include "seqconv/kernels/activation.h"
#include "seqconv/ops/common.h"

/// The small fused elementwise operations between matrix products. Dropout
/// masks are a function of (seed, element index) alone (base/random.h) and
/// never stored.
namespace seqconv::ops {

/// Inverted dropout: an element is kept with probability 1-p and then scaled by
/// 1/(1-p). p = 0 returns x. Any shape; differentiable.
at::Tensor dropout(const at::Tensor& x, double p, uint64_t seed);

/// Gated linear unit with dropout on its input already applied by the caller:
/// x [..., 2C] -> a * sigmoid(b) [..., C], a the first half. Rows at and beyond
/// lengths[b] become zero when `lengths` [B] is given (x is [B, T, 2C] then).
at::Tensor glu(
    const at::Tensor& x,
    const std::optional<at::Tensor>& lengths = {});

/// residual + dropout(x): the end of every block. Differentiable in both.
at::Tensor dropout_add(
    const at::Tensor& x,
    const at::Tensor& residual,
    double p,
    uint64_t seed);

/// LayerNorm(residual + dropout(x)) over the last axis (post-norm blocks), in
/// one pass each way. weight, bias [C].
at::Tensor dropout_add_layer_norm(
    const at::Tensor& x,
    const at::Tensor& residual,
    const at::Tensor& weight,
    const at::Tensor& bias,
    double p,
    uint64_t seed,
    double epsilon = 1e-5);

/// LayerNorm(x) over the last axis (pre-norm blocks). weight, bias [C].
at::Tensor layer_norm(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    double epsilon = 1e-5);

using kernels::Activation;

/// dropout(activation(x)), one pass each way.
at::Tensor activation_dropout(
    const at::Tensor& x,
    Activation activation,
    double p,
    uint64_t seed);

}  // namespace seqconv::ops

template <>
struct seqconv::EnumNames<seqconv::ops::Activation> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::ops::Activation>>(
          {{"relu", seqconv::ops::Activation::kRelu},
           {"swish", seqconv::ops::Activation::kSwish}});
};
