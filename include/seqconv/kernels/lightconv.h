#pragma once

#include "seqconv/kernels/conv.h"

namespace seqconv::kernels {

/// Lightweight convolution: x [B, T, C] with one kernel [H, K] a head.
/// S is the storage type (float, double or BFloat16), A what it is summed in.
template <class S, class A = AccumulatorOf<S>>
struct LightConvForward {
  ConvShape shape;
  bool softmax = true;
  TapDrop drop;                      ///< elements h*K + j
  const S* x = nullptr;              ///< [B, T, C]
  const A* weight = nullptr;         ///< [H, K]
  const A* bias = nullptr;           ///< [C] or null
  const int64_t* lengths = nullptr;  ///< [B] or null
  S* y = nullptr;                    ///< [B, T, C]
};

template <class S>
void lightconv_forward(const LightConvForward<S>& args, const Execution& run);

template <class S, class A = AccumulatorOf<S>>
struct LightConvBackward {
  ConvShape shape;
  bool softmax = true;
  TapDrop drop;
  const S* x = nullptr;
  const A* weight = nullptr;
  const int64_t* lengths = nullptr;
  const S* grad_y = nullptr;  ///< [B, T, C]
  S* grad_x = nullptr;        ///< [B, T, C]
  A* grad_weight = nullptr;   ///< [H, K]
};

/// Both gradients in one pass. The sum over batch and time is cut into pieces
/// that depend on the sizes alone, and added up in a fixed order: the same
/// bits for any number of threads.
template <class S>
void lightconv_backward(const LightConvBackward<S>& args, const Execution& run);

/// The next T' = shape.steps inputs of N = shape.batch causal streams
/// (padding_left = K-1). The ring has K-1 slots.
template <class S, class A = AccumulatorOf<S>>
struct LightConvStep {
  ConvShape shape;
  bool softmax = true;
  const S* x = nullptr;       ///< [N, T', C]
  const A* weight = nullptr;  ///< [H, K]
  const A* bias = nullptr;    ///< [C] or null
  RingState<S> state;
  S* y = nullptr;  ///< [N, T', C]
};

template <class S>
void lightconv_step(const LightConvStep<S>& args, const Execution& run);

/// grad_bias[c] = sum of grad_y[b, t, c] over b and t < lengths[b], in a fixed
/// order. Shared by both convolutions.
template <class S>
void bias_gradient(
    const ConvShape& shape,
    const int64_t* lengths,
    const S* grad_y,
    AccumulatorOf<S>* grad_bias,
    const Execution& run);

}  // namespace seqconv::kernels
