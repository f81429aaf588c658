#pragma once

#include "kernels/normalization_names.h"
#include "libtorch/ops/conv_checks.h"
#include "libtorch/ops/dispatch.h"

/// The dispatcher's entries of lightconv and dynamicconv. They have the same
/// arguments; `logits` is weight [H, K] or logits [B, T, H, K].
namespace seqconv::ops {

/// Functions that the dispatcher calls.
template <class Impl>
struct ConvEntry {
  static at::Tensor forward(
      const at::Tensor& x,
      const at::Tensor& logits,
      const OptionalTensor& bias,
      c10::SymInt padding_left,
      std::string_view normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths) {
    return Impl::forward(
        {.op = Impl::kForward,
         .logits_name = Impl::kLogits,
         .x = x,
         .logits = logits,
         .bias = bias,
         .padding_left = std::move(padding_left),
         .normalization = normalization,
         .renormalize_edges = renormalize_edges,
         .drop = {drop_p, drop_seed, drop_mask},
         .lengths = lengths});
  }

  static Gradients backward(
      const at::Tensor& grad,
      const at::Tensor& x,
      const at::Tensor& logits,
      GradientMask wanted,
      c10::SymInt padding_left,
      std::string_view normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths) {
    return Impl::backward(
        {.op = Impl::kBackward,
         .logits_name = Impl::kLogits,
         .x = x,
         .logits = logits,
         .padding_left = std::move(padding_left),
         .normalization = normalization,
         .renormalize_edges = renormalize_edges,
         .drop = {drop_p, drop_seed, drop_mask},
         .lengths = lengths},
        grad,
        wanted);
  }

  static at::Tensor step(
      const at::Tensor& x,
      at::Tensor& state,
      const at::Tensor& position,
      const at::Tensor& logits,
      const OptionalTensor& bias,
      std::string_view normalization,
      bool renormalize_edges) {
    return Impl::step(
        {.op = Impl::kStep,
         .logits_name = Impl::kLogits,
         .x = x,
         .logits = logits,
         .bias = bias,
         .normalization = normalization,
         .renormalize_edges = renormalize_edges},
        state,
        position);
  }
};

/// Calls the dispatcher.
template <class Kind>
struct ConvDispatch {
  static at::Tensor forward(const ConvArguments& args) {
    static const auto op = find_op<decltype(ConvEntry<Kind>::forward)>(Kind::kForward);
    return call(op, args, args.x, args.logits, args.bias);
  }
  static Gradients backward(
      const ConvArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    static const auto op = find_op<decltype(ConvEntry<Kind>::backward)>(Kind::kBackward);
    return call(op, args, grad, args.x, args.logits, wanted);
  }
  static at::Tensor step(const ConvArguments& args, at::Tensor& state, const at::Tensor& position) {
    static const auto op = find_op<decltype(ConvEntry<Kind>::step)>(Kind::kStep);
    return op.call(
        args.x,
        state,
        position,
        args.logits,
        args.bias,
        args.normalization,
        args.renormalize_edges);
  }

 private:
  template <class Op, class... First>
  static auto call(const Op& op, const ConvArguments& args, const First&... first) {
    return op.call(
        first...,
        args.padding_left,
        args.normalization,
        args.renormalize_edges,
        args.drop.p,
        args.drop.seed,
        args.drop.mask,
        args.lengths);
  }
};

struct LightConvKind {
  static constexpr const char* kForward = "lightconv";
  static constexpr const char* kBackward = "lightconv_backward";
  static constexpr const char* kStep = "lightconv_step";
  static constexpr const char* kLogits = "weight";  ///< [H, K]
  using Arguments = ConvArguments;
  using Dispatch = ConvDispatch<LightConvKind>;
  template <class Impl>
  using Entry = ConvEntry<Impl>;
};

struct DynamicConvKind {
  static constexpr const char* kForward = "dynamicconv";
  static constexpr const char* kBackward = "dynamicconv_backward";
  static constexpr const char* kStep = "dynamicconv_step";
  static constexpr const char* kLogits = "logits";  ///< [B, T, H, K]
  using Arguments = ConvArguments;
  using Dispatch = ConvDispatch<DynamicConvKind>;
  template <class Impl>
  using Entry = ConvEntry<Impl>;
};

/// Room for the gradients of x, of `logits` (or what stands for them) and of the bias, each [0]
/// where it is not wanted.
Gradients empty_gradients(
    const ConvArguments& args, const at::Tensor& logits, const GradientMask& wanted);

inline Gradients empty_gradients(const ConvArguments& args, const GradientMask& wanted) {
  return empty_gradients(args, args.logits, wanted);
}

/// Taps from logits, over the last axis.
at::Tensor normalize_reference(const at::Tensor& logits, Normalization normalization);

/// The gradient of logits from `grad`, that of those taps.
at::Tensor normalize_reference_backward(
    const at::Tensor& logits, Normalization normalization, const at::Tensor& grad);

/// [B, T, 1]: one at positions before a row's length, of x's type.
at::Tensor length_mask(const at::Tensor& x, const at::Tensor& lengths);

}  // namespace seqconv::ops
