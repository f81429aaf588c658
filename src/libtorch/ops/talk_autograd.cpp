#include <torch/library.h>

#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/talk_ops.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const c10::TypedOperatorHandle<TalkBackwardSignature>& talk_backward_op() {
  static const auto op = find_op<TalkBackwardSignature>("talk_backward");
  return op;
}

const c10::TypedOperatorHandle<TalkStepSignature>& talk_step_op() {
  static const auto op = find_op<TalkStepSignature>("talk_step");
  return op;
}

/// An operator of its own, so that asking for a second gradient says clearly
/// that there is none.
class TalkBackwardFunction : public torch::autograd::Function<TalkBackwardFunction> {
 public:
  static variable_list forward(
      AutogradContext* /*ctx*/,
      const at::Tensor& grad,
      const at::Tensor& x,
      const at::Tensor& offset_left,
      const OptionalTensor& offset_right,
      int64_t max_left,
      int64_t max_right,
      const OptionalTensor& lengths,
      GradientMask output_mask) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [grad_x, grad_left, grad_right] = talk_backward_op().call(
        grad, x, offset_left, offset_right, max_left, max_right, lengths, output_mask);
    return {grad_x, grad_left, grad_right};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false, "[talk] double backward is not supported");
  }
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> talk_backward_autograd(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths,
    GradientMask output_mask) {
  check_no_tangent("talk", {grad, x, offset_left, offset_right.value_or(at::Tensor())});
  const variable_list grads = TalkBackwardFunction::apply(
      grad, x, offset_left, offset_right, max_left, max_right, lengths, output_mask);
  return {grads[0], grads[1], grads[2]};
}

/// Keeps its inputs only.
class TalkFunction : public torch::autograd::Function<TalkFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& x,
      const at::Tensor& offset_left,
      const OptionalTensor& offset_right,
      int64_t max_left,
      int64_t max_right,
      const OptionalTensor& lengths) {
    ctx->save_for_backward(
        {x, offset_left, offset_right.value_or(at::Tensor()), lengths.value_or(at::Tensor())});
    ctx->saved_data["max_left"] = max_left;
    ctx->saved_data["max_right"] = max_right;
    at::AutoDispatchBelowADInplaceOrView below;
    static const auto op = find_op<TalkSignature>("talk");
    return op.call(x, offset_left, offset_right, max_left, max_right, lengths);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const OptionalTensor right = if_defined(saved[2]);
    const GradientMask wanted = wanted_gradients(ctx, {true, true, right.has_value()});
    auto [grad_x, grad_left, grad_right] = talk_backward_op().call(
        grads[0],
        saved[0],
        saved[1],
        right,
        ctx->saved_data["max_left"].toInt(),
        ctx->saved_data["max_right"].toInt(),
        if_defined(saved[3]),
        wanted);
    return gradients_of(wanted, {grad_x, grad_left, grad_right}, 6);
  }
};

at::Tensor talk_autograd(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths) {
  check_no_tangent("talk", {x, offset_left, offset_right.value_or(at::Tensor())});
  return TalkFunction::apply(x, offset_left, offset_right, max_left, max_right, lengths);
}

at::Tensor talk_step_autograd(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  check_not_differentiated("talk_step", {x, state, offset_left});
  at::AutoDispatchBelowAutograd below;
  return talk_step_op().call(x, state, position, offset_left, max_left);
}

at::Tensor talk_step_inplace(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  return change_in_place(
      state, [&] { return talk_step_op().call(x, state, position, offset_left, max_left); });
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  m.impl("talk", talk_autograd);
  m.impl("talk_backward", talk_backward_autograd);
  m.impl("talk_step", talk_step_autograd);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  m.impl("talk_step", talk_step_inplace);
}

}  // namespace seqconv::ops
