#pragma once

#include "seqconv/kernels/conv.h"

namespace seqconv::kernels {

/// Dynamic convolution: x [B, T, C] with a kernel of K logits for every
/// position and head. S stores x and y, L the logits (S, or float where S is
/// BFloat16). Softmax, DropConnect and convolution are one pass; the taps never
/// exist as a whole.
template <class S, class L>
struct DynamicConvForward {
  ConvShape shape;
  bool softmax = true;
  TapDrop drop;                            ///< ((b*T + t)*H + h)*K + j
  const S* x = nullptr;                    ///< [B, T, C]
  const L* logits = nullptr;               ///< [B, T, H, K]
  const AccumulatorOf<S>* bias = nullptr;  ///< [C] or null
  const int64_t* lengths = nullptr;        ///< [B] or null
  S* y = nullptr;                          ///< [B, T, C]
};

template <class S, class L>
void dynamicconv_forward(
    const DynamicConvForward<S, L>& args,
    const Execution& run);

/// Taps are computed again from the logits. Every position of both gradients
/// has one owner that sums it in a fixed order.
template <class S, class L>
struct DynamicConvBackward {
  ConvShape shape;
  bool softmax = true;
  TapDrop drop;
  const S* x = nullptr;
  const L* logits = nullptr;
  const int64_t* lengths = nullptr;
  const S* grad_y = nullptr;  ///< [B, T, C]
  S* grad_x = nullptr;        ///< [B, T, C]
  L* grad_logits = nullptr;   ///< [B, T, H, K]
};

template <class S, class L>
void dynamicconv_backward(
    const DynamicConvBackward<S, L>& args,
    const Execution& run);

/// See LightConvStep.
template <class S, class L>
struct DynamicConvStep {
  ConvShape shape;
  bool softmax = true;
  const S* x = nullptr;                    ///< [N, T', C]
  const L* logits = nullptr;               ///< [N, T', H, K]
  const AccumulatorOf<S>* bias = nullptr;  ///< [C] or null
  RingState<S> state;
  S* y = nullptr;  ///< [N, T', C]
};

template <class S, class L>
void dynamicconv_step(const DynamicConvStep<S, L>& args, const Execution& run);

}  // namespace seqconv::kernels
