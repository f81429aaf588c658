#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>

#include "base/error.h"
#include "kernels/normalization_names.h"
#include "libtorch/ops/conv_checks.h"

/// The dispatcher's entries of lightconv and dynamicconv. They have the same
/// arguments; `logits` is weight [H, K] or logits [B, T, H, K].
namespace seqconv::ops {
using namespace internal;

using ConvSignature = at::Tensor(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths);

/// Which gradients are asked for: those of x, the logits (offset_left), and the
/// bias (offset_right). The others come back empty, [0], and are not computed.
using GradientMask = std::array<bool, 3>;

/// -> grad_x, grad_logits, grad_bias.
using ConvBackwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    GradientMask output_mask,
    c10::SymInt padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths);

using ConvStepSignature = at::Tensor(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges);

/// The operator seqconv::internal::NAME, to be called through the dispatcher.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(concat("seqconv::", name).c_str(), "")
      .typed<Signature>();
}

/// The checks of the forward, backward and step form of either convolution.
void check_conv_backward(const at::Tensor& grad, const ConvArguments& args);
void check_conv_step(
    const ConvArguments& args, const at::Tensor& state, const at::Tensor& position);

/// y[t] = bias + sum_j taps[t, j] * x[t - padding_left + j] in tensor algebra,
/// with DropConnect and lengths: what both references share.
/// taps [B, T, H, K] or [1, 1, H, K], normalised.
at::Tensor convolve_reference(
    const at::Tensor& x,
    const at::Tensor& taps,
    int64_t padding_left,
    const OptionalTensor& bias,
    const OptionalTensor& lengths);

/// Room for a gradient, or [0] where it was not asked for.
at::Tensor empty_gradient(bool wanted, c10::SymIntArrayRef sizes, const at::TensorOptions& options);

/// Taps from logits, over the last axis.
at::Tensor normalize_reference(const at::Tensor& logits, Normalization normalization);

/// The gradient of logits from `grad`, that of those taps.
at::Tensor normalize_reference_backward(
    const at::Tensor& logits, Normalization normalization, const at::Tensor& grad);

/// Taps [B, T, H, K] of every position of x from logits that broadcast to
/// that: softmax over the taps that meet an input.
at::Tensor renormalized_reference(
    const at::Tensor& logits,
    const at::Tensor& x,
    int64_t padding_left,
    const OptionalTensor& lengths);

/// DropConnect on taps of any shape, by the definition in base/random.h.
at::Tensor drop_reference(const at::Tensor& taps, const DropConnect& drop);

/// [B, T, 1]: one at positions before a row's length, of x's type.
at::Tensor length_mask(const at::Tensor& x, const at::Tensor& lengths);

}  // namespace seqconv::ops
