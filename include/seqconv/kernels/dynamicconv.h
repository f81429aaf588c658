#pragma once

#include "seqconv/kernels/conv.h"

/// Dynamic convolution: x [B, T, C] with a kernel of K logits for every
/// position and head, of x's type or float beside BFloat16.
namespace seqconv::kernels {

/// Softmax, DropConnect and convolution are one pass; the taps never exist as a
/// whole.
template <class S, class L>
void dynamicconv_forward(const ConvForward<S, L>& args, const Execution& run);

/// Taps are computed again from the logits. Every position of both gradients
/// has one owner that sums it in a fixed order.
template <class S, class L>
void dynamicconv_backward(const ConvBackward<S, L>& args, const Execution& run);

template <class S, class L>
void dynamicconv_step(const ConvStep<S, L>& args, const Execution& run);

}  // namespace seqconv::kernels
