#include <torch/library.h>

#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/conv_ops.h"

/// Autograd of lightconv and dynamicconv: the same function over different
/// dispatcher entries.
namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The gradient as an operator of its own, so that asking for a second one
/// says clearly that there is none.
template <class Kind>
class ConvBackwardFunction : public torch::autograd::Function<ConvBackwardFunction<Kind>> {
 public:
  static variable_list forward(
      AutogradContext* /*ctx*/,
      const at::Tensor& grad,
      const at::Tensor& x,
      const at::Tensor& logits,
      GradientMask output_mask,
      c10::SymInt padding_left,
      const std::string& normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths) {
    at::AutoDispatchBelowADInplaceOrView below;
    static const auto op = find_op<ConvBackwardSignature>(Kind::kBackward);
    auto [grad_x, grad_logits, grad_bias] = op.call(
        grad,
        x,
        logits,
        output_mask,
        std::move(padding_left),
        normalization,
        renormalize_edges,
        drop_p,
        drop_seed,
        drop_mask,
        lengths);
    return {grad_x, grad_logits, grad_bias};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false, "[", Kind::kForward, "] double backward is not supported");
  }
};

template <class Kind>
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_backward_autograd(
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
    const OptionalTensor& lengths) {
  check_no_tangent(Kind::kForward, {grad, x, logits});
  const variable_list grads = ConvBackwardFunction<Kind>::apply(
      grad,
      x,
      logits,
      output_mask,
      std::move(padding_left),
      std::string(normalization),
      renormalize_edges,
      drop_p,
      drop_seed,
      drop_mask,
      lengths);
  return {grads[0], grads[1], grads[2]};
}

/// Keeps x and the logits only; taps are made again.
template <class Kind>
class ConvFunction : public torch::autograd::Function<ConvFunction<Kind>> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& x,
      const at::Tensor& logits,
      const OptionalTensor& bias,
      c10::SymInt padding_left,
      const std::string& normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths) {
    ctx->save_for_backward(
        {x,
         logits,
         drop_seed.value_or(at::Tensor()),
         drop_mask.value_or(at::Tensor()),
         lengths.value_or(at::Tensor())});
    ctx->saved_data["has_bias"] = bias.has_value();
    ctx->saved_data["padding_left"] = padding_left;
    ctx->saved_data["normalization"] = normalization;
    ctx->saved_data["renormalize_edges"] = renormalize_edges;
    ctx->saved_data["drop_p"] = drop_p;
    at::AutoDispatchBelowADInplaceOrView below;
    static const auto op = find_op<ConvSignature>(Kind::kForward);
    return op.call(
        x,
        logits,
        bias,
        padding_left,
        normalization,
        renormalize_edges,
        drop_p,
        drop_seed,
        drop_mask,
        lengths);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool has_bias = ctx->saved_data["has_bias"].toBool();
    const GradientMask wanted = wanted_gradients(ctx, {true, true, has_bias});
    const std::string normalization = ctx->saved_data["normalization"].toStringRef();
    static const auto op = find_op<ConvBackwardSignature>(Kind::kBackward);
    auto [grad_x, grad_logits, grad_bias] = op.call(
        grads[0],
        saved[0],
        saved[1],
        wanted,
        ctx->saved_data["padding_left"].toSymInt(),
        normalization,
        ctx->saved_data["renormalize_edges"].toBool(),
        ctx->saved_data["drop_p"].toDouble(),
        if_defined(saved[2]),
        if_defined(saved[3]),
        if_defined(saved[4]));
    return gradients_of(wanted, {grad_x, grad_logits, grad_bias}, 10);
  }
};

template <class Kind>
at::Tensor conv_autograd(
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
  check_no_tangent(Kind::kForward, {x, logits, bias.value_or(at::Tensor())});
  return ConvFunction<Kind>::apply(
      x,
      logits,
      bias,
      std::move(padding_left),
      std::string(normalization),
      renormalize_edges,
      drop_p,
      drop_seed,
      drop_mask,
      lengths);
}

template <class Kind>
at::Tensor conv_step_autograd(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  check_not_differentiated(Kind::kStep, {x, state, logits, bias.value_or(at::Tensor())});
  at::AutoDispatchBelowAutograd below;
  static const auto op = find_op<ConvStepSignature>(Kind::kStep);
  return op.call(x, state, position, logits, bias, normalization, renormalize_edges);
}

template <class Kind>
at::Tensor conv_step_inplace(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  static const auto op = find_op<ConvStepSignature>(Kind::kStep);
  return change_in_place(state, [&] {
    return op.call(x, state, position, logits, bias, normalization, renormalize_edges);
  });
}

template <class Kind>
void register_autograd(torch::Library& m) {
  m.impl(Kind::kForward, conv_autograd<Kind>);
  m.impl(Kind::kBackward, conv_backward_autograd<Kind>);
  m.impl(Kind::kStep, conv_step_autograd<Kind>);
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  register_autograd<LightConvKind>(m);
  register_autograd<DynamicConvKind>(m);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  m.impl(LightConvKind::kStep, conv_step_inplace<LightConvKind>);
  m.impl(DynamicConvKind::kStep, conv_step_inplace<DynamicConvKind>);
}

}  // namespace seqconv::ops
