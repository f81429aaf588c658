#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "libtorch/ops/conv_checks.h"

/// Helpers shared by the operators' autograd entries.
namespace seqconv::ops {

/// A saved tensor as the optional that it was.
inline OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

/// An optional as a tensor to be saved.
inline at::Tensor or_undefined(const OptionalTensor& tensor) {
  return tensor.value_or(at::Tensor());
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
