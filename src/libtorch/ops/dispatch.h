#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "base/error.h"

/// Entries of lightconv, dynamicconv and talk in the dispatcher: the parts that they share.
///
/// A Kind is one of these operators: its names, `Arguments` (a struct of all that forward takes),
/// `Dispatch`, which calls the dispatcher with them, and `Entry<Impl>`, which the dispatcher calls.
/// An Impl (kernels of a device, shapes, autograd, autocast) derives from its Kind and has
///
///   at::Tensor forward(const Arguments& args);
///   Gradients backward(const Arguments& args, const at::Tensor& grad, const GradientMask& wanted);
///   at::Tensor step(const Arguments& args, at::Tensor& state, const at::Tensor& position);
///
/// or those of them that it serves. So does Dispatch.
namespace seqconv::ops {
using namespace internal;

/// The operator seqconv::NAME, to be called through the dispatcher.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(concat("seqconv::", name).c_str(), "")
      .typed<Signature>();
}

/// Selects the gradients to compute: of x, the logits (offset_left), and the bias
/// (offset_right). The others are returned empty, [0].
using GradientMask = std::array<bool, 3>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Registers what an Impl has.
template <class Impl>
void register_impl(torch::Library& m) {
  using Entry = typename Impl::template Entry<Impl>;
  if constexpr (requires { &Impl::forward; })
    m.impl(Impl::kForward, Entry::forward);
  if constexpr (requires { &Impl::backward; })
    m.impl(Impl::kBackward, Entry::backward);
  if constexpr (requires { &Impl::step; })
    m.impl(Impl::kStep, Entry::step);
}

}  // namespace seqconv::ops
