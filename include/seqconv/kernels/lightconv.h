#pragma once

#include "seqconv/kernels/conv.h"

/// Lightweight convolution: x [B, T, C] with one kernel [H, K] a head, given in
/// the type that sums are kept in.
namespace seqconv::kernels {

template <class S>
void lightconv_forward(
    const ConvForward<S, AccumulatorOf<S>>& args,
    const Execution& run);

/// Both gradients in one pass. The sum over batch and time is cut into chunks
/// that depend on the sizes alone, and added up in a fixed order: the same
/// bits for any number of threads.
template <class S>
void lightconv_backward(
    const ConvBackward<S, AccumulatorOf<S>>& args,
    const Execution& run);

template <class S>
void lightconv_step(
    const ConvStep<S, AccumulatorOf<S>>& args,
    const Execution& run);

}  // namespace seqconv::kernels
