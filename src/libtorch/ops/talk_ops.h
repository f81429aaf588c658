#pragma once

#include "kernels/talk.h"
#include "libtorch/ops/conv_ops.h"

/// The dispatcher's entries of talk.
namespace seqconv::ops {
using namespace internal;

using TalkSignature = at::Tensor(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths);

/// -> grad_x, grad_offset_left, grad_offset_right.
using TalkBackwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths,
    GradientMask output_mask);

using TalkStepSignature = at::Tensor(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left);

/// Everything that can be said without reading values.
struct TalkArguments {
  const char* op;
  const at::Tensor& x;
  const at::Tensor& offset_left;
  const OptionalTensor offset_right = std::nullopt;
  int64_t max_left = 0;
  int64_t max_right = 0;
  const OptionalTensor lengths = std::nullopt;
};

/// Sizes of checked arguments.
kernels::TalkShape talk_shape(const TalkArguments& args);

void check_talk(const TalkArguments& args);

/// Room for the gradients of x and of the offsets, each [0] where it is not
/// asked for or there is no offset.
std::tuple<at::Tensor, at::Tensor, at::Tensor> empty_talk_gradients(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    const GradientMask& output_mask);
void check_talk_step(
    const TalkArguments& args, const at::Tensor& state, const at::Tensor& position);

}  // namespace seqconv::ops
