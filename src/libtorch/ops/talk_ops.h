#pragma once

#include "kernels/talk.h"
#include "libtorch/ops/conv_checks.h"
#include "libtorch/ops/dispatch.h"

/// The dispatcher's entries of talk.
namespace seqconv::ops {

/// As ConvArguments.
struct TalkArguments {
  const char* op = nullptr;                        ///< its name in messages
  const at::Tensor& x;                             ///< [B, T, C]
  const at::Tensor& offset_left;                   ///< [B, T, H]
  const OptionalTensor& offset_right = kNoTensor;  ///< as offset_left
  int64_t max_left = 0;
  int64_t max_right = 0;
  const OptionalTensor& lengths = kNoTensor;  ///< [B]

  auto inputs() const { return std::tie(x, offset_left, offset_right); }
  TalkArguments with(
      const at::Tensor& x, const at::Tensor& left, const OptionalTensor& right) const {
    return {op, x, left, right, max_left, max_right, lengths};
  }
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
    return Impl::forward(
        {Impl::kForward, x, offset_left, offset_right, max_left, max_right, lengths});
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
    return Impl::backward(
        {Impl::kBackward, x, offset_left, offset_right, max_left, max_right, lengths},
        grad,
        wanted);
  }

  static at::Tensor step(
      const at::Tensor& x,
      at::Tensor& state,
      const at::Tensor& position,
      const at::Tensor& offset_left,
      int64_t max_left) {
    return Impl::step(
        {.op = Impl::kStep, .x = x, .offset_left = offset_left, .max_left = max_left},
        state,
        position);
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
