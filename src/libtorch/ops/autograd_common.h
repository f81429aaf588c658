#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "libtorch/ops/conv_ops.h"

/// What the operators' autograd entries share.
namespace seqconv::ops {

/// A saved tensor as the optional that it was.
inline OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

/// Which of up to three inputs, the first ones of a function, somebody wants
/// the gradient of; `given` says which there are.
inline GradientMask wanted_gradients(
    torch::autograd::AutogradContext* ctx, const GradientMask& given) {
  GradientMask wanted = {};
  size_t edge = 0;
  for (size_t i = 0; i < given.size(); ++i)
    wanted[i] = given[i] && ctx->needs_input_grad(edge++);
  return wanted;
}

/// What a function of `count` inputs returns: undefined where nothing was
/// wanted.
inline torch::autograd::variable_list gradients_of(
    const GradientMask& wanted, const std::array<at::Tensor, 3>& grads, size_t count) {
  torch::autograd::variable_list result(count);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i])
      result[i] = grads[i];
  return result;
}

/// Runs step() -> y, which changes `state`, below autograd, and tells autograd
/// that the state has changed.
template <class Step>
at::Tensor change_in_place(at::Tensor& state, const Step& step) {
  at::Tensor y;
  {
    at::AutoDispatchBelowADInplaceOrView below;
    y = step();
  }
  if (!state.is_inference())
    state.unsafeGetTensorImpl()->bump_version();
  return y;
}

}  // namespace seqconv::ops
