#pragma once

#include "base/enum_names.h"
#include "kernels/activation.h"
#include "libtorch/ops/seed.h"
#include "seqconv/ops/conv_options.h"

/// The small elementwise operations between matrix products. Dropout masks are
/// a function of (seed, element index) alone (base/random.h). On the CPU, in
/// float32, float64 and bfloat16, each is one fused pass that draws its mask
/// again instead of storing it and computes in float32 what is stored in
/// bfloat16; elsewhere it is its reference.
namespace seqconv::ops {
using namespace internal;

/// Inverted dropout: an element is kept with probability 1-p and then scaled by
/// 1/(1-p). p = 0 returns x. Any shape; differentiable.
at::Tensor dropout(const at::Tensor& x, double p, const Seed& seed);

/// Gated linear unit with dropout on its input already applied by the caller:
/// x [..., 2C] -> a * sigmoid(b) [..., C], a the first half. Rows at and beyond
/// lengths[b] become zero when `lengths` [B] is given (x is [B, T, 2C] then).
at::Tensor glu(const at::Tensor& x, const std::optional<at::Tensor>& lengths = {});

/// residual + dropout(x): the end of every block. Differentiable in both.
at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, double p, const Seed& seed);

/// LayerNorm(residual + dropout(x)) over the last axis (post-norm blocks), in
/// one pass each way. weight, bias [C], of x's type or float32 beside 16 bits;
/// statistics are float32 then.
at::Tensor dropout_add_layer_norm(
    const at::Tensor& x,
    const at::Tensor& residual,
    const at::Tensor& weight,
    const at::Tensor& bias,
    double p,
    const Seed& seed,
    double epsilon = 1e-5);

/// LayerNorm(x) over the last axis (pre-norm blocks). weight, bias as above.
at::Tensor layer_norm(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon = 1e-5);

using kernels::Activation;

/// dropout(activation(x)), one pass each way.
at::Tensor activation_dropout(
    const at::Tensor& x, Activation activation, double p, const Seed& seed);

/// The same in plain tensor algebra, for any device and floating-point type;
/// differentiable any number of times.
at::Tensor dropout_reference(const at::Tensor& x, double p, const Seed& seed);
at::Tensor glu_reference(const at::Tensor& x, const std::optional<at::Tensor>& lengths = {});
at::Tensor activation_dropout_reference(
    const at::Tensor& x, Activation activation, double p, const Seed& seed);
at::Tensor layer_norm_reference(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon = 1e-5);

/// Booleans of `sizes` on `device`: which elements a dropout of probability p
/// keeps.
at::Tensor kept_elements(at::IntArrayRef sizes, double p, const Seed& seed, at::Device device);

}  // namespace seqconv::ops

template <>
struct seqconv::internal::EnumNames<seqconv::ops::Activation> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::ops::Activation>>(
          {{"relu", seqconv::ops::Activation::kRelu}, {"swish", seqconv::ops::Activation::kSwish}});
};
