#pragma once

#include "kernels/talk.h"
#include "libtorch/ops/conv_checks.h"
#include "libtorch/ops/dispatch.h"

/// The dispatcher's entries of talk.
namespace seqconv::ops {

struct TalkArguments {
  const char* op = nullptr;                    ///< its name in messages
  at::Tensor x;                                ///< [B, T, C]
  at::Tensor offset_left;                      ///< [B, T, H]
  OptionalTensor offset_right = std::nullopt;  ///< as offset_left
  int64_t max_left = 0;
  int64_t max_right = 0;
  OptionalTensor lengths = std::nullopt;  ///< [B]

  Differentiable differentiable() { return {&x, &offset_left, pointer_to(offset_right)}; }
};

/// Functions that the dispatcher calls.
template <class Impl>
struct TalkEntry {
  static at::Tensor forward(
      const at::Tensor& x,
      const at::Tensor& offset_left,
      const OptionalTensor& offset_right,
      int64_t max_left,
      int64_t max_right,
      const OptionalTensor& lengths) {
    TalkArguments args = {
        Impl::kForward, x, offset_left, offset_right, max_left, max_right, lengths};
    return Impl::forward(args);
  }

  static Gradients backward(
      const at::Tensor& grad,
      const at::Tensor& x,
      const at::Tensor& offset_left,
      const OptionalTensor& offset_right,
      int64_t max_left,
      int64_t max_right,
      const OptionalTensor& lengths,
      GradientMask wanted) {
    TalkArguments args = {
        Impl::kBackward, x, offset_left, offset_right, max_left, max_right, lengths};
    return Impl::backward(args, grad, wanted);
  }

  static at::Tensor step(
      const at::Tensor& x,
      at::Tensor& state,
      const at::Tensor& position,
      const at::Tensor& offset_left,
      int64_t max_left) {
    TalkArguments args = {
        .op = Impl::kStep, .x = x, .offset_left = offset_left, .max_left = max_left};
    return Impl::step(args, state, position);
  }
};

/// Calls the dispatcher.
struct TalkDispatch {
  static at::Tensor forward(const TalkArguments& args);
  static Gradients backward(
      const TalkArguments& args, const at::Tensor& grad, const GradientMask& wanted);
  static at::Tensor step(const TalkArguments& args, at::Tensor& state, const at::Tensor& position);
};

struct TalkKind {
  static constexpr const char* kForward = "talk";
  static constexpr const char* kBackward = "talk_backward";
  static constexpr const char* kStep = "talk_step";
  using Arguments = TalkArguments;
  using Dispatch = TalkDispatch;
  template <class Impl>
  using Entry = TalkEntry<Impl>;
};

/// Everything that can be said without reading values.
void check(const TalkArguments& args);
void check_step(const TalkArguments& args, const at::Tensor& state, const at::Tensor& position);

/// Room for the gradients of x and of the offsets, each [0] where it is not
/// asked for or there is no offset.
Gradients empty_gradients(const TalkArguments& args, const GradientMask& wanted);

/// Sizes of checked arguments.
kernels::TalkShape talk_shape(const TalkArguments& args);

}  // namespace seqconv::ops
