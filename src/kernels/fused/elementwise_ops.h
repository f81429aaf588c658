#pragma once

#include <cstdint>

#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/cross_entropy.h"
#include "seqconv/kernels/dropout.h"
#include "seqconv/kernels/isa.h"
#include "seqconv/kernels/layer_norm.h"
#include "seqconv/kernels/random_words.h"

/// The inner loops of the elementwise operations between the matrix products,
/// on some elements or rows of their tensors; what they compute is said at the
/// passes. They are written in *-inl.h and compiled for each instruction set in
/// elementwise_ops.cpp.
namespace seqconv::kernels {

/// Adam's numbers in the type of the buffers.
template <class T>
struct AdamFactors {
  T grad_scale, beta1, rest1, beta2, rest2, epsilon, decay, rate;
};

/// p = keep p + look_ahead buf - look_rate g; buf = carry buf - rate g.
template <class T>
struct NagFactors {
  T keep, look_ahead, look_rate, carry, rate;
};

/// Operations on tensors of type T. Ranges [begin, end) of elements begin at
/// whole tiles (chunks.h).
template <class T>
struct ElementwiseOps {
  using Activate =
      void (*)(const T* x, T* y, int64_t begin, int64_t end, Dropout drop);
  Activate relu;
  Activate swish;
  void (*relu_backward)(
      const T* y,
      const T* grad_y,
      T* grad_x,
      int64_t begin,
      int64_t end,
      T scale);
  void (*swish_backward)(
      const T* x,
      const T* grad_y,
      T* grad_x,
      int64_t begin,
      int64_t end,
      Dropout drop);
  /// drop.p > 0.
  void (*dropout)(const T* x, T* y, int64_t begin, int64_t end, Dropout drop);
  void (*dropout_add)(
      const T* x,
      const T* residual,
      T* y,
      int64_t begin,
      int64_t end,
      Dropout drop);
  /// One row.
  void (*glu)(const T* x, T* y, int64_t channels);
  void (
      *glu_backward)(const T* x, const T* grad_y, T* grad_x, int64_t channels);
  /// Rows [begin, end).
  void (
      *layer_norm)(const LayerNormForward<T>& pass, int64_t begin, int64_t end);
  /// The same; adds to grad_weight and grad_bias [C].
  void (*layer_norm_backward)(
      const LayerNormBackward<T>& pass,
      int64_t begin,
      int64_t end,
      T* grad_weight,
      T* grad_bias);
  /// One row.
  void (*cross_entropy)(
      const CrossEntropyRows<T>& pass,
      const SmoothedLoss& smoothed,
      int64_t row);
  void (*adam)(
      T* p,
      const T* g,
      T* m,
      T* v,
      int64_t count,
      const AdamFactors<T>& factors);
  void (*nag)(
      T* p,
      const T* g,
      T* buf,
      int64_t count,
      const NagFactors<T>& factors);
  double (*squared_sum)(const T* x, int64_t count);
  void (*scale)(T* x, int64_t count, T factor);
};

/// Rows of one sequence.
template <class S>
struct AverageRows {
  const S* x = nullptr;
  S* y = nullptr;
  int64_t stride = 0;  ///< from a row of x or y to the next one
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t position = 0;  ///< t of the first row
};

template <class S>
using AddAverageRows = void (*)(const AverageRows<S>& rows, double* sums);

template <class S>
struct AverageOps {
  /// sums += x[t]; y[t] = sums / (t + 1).
  AddAverageRows<S> forward;
  /// sums += x[t] / (t + 1); y[t] = sums; from the last row to the first.
  AddAverageRows<S> backward;
};

using RandomWordRows = decltype(&random_word_rows);

template <class T>
const ElementwiseOps<T>& elementwise_ops(Isa isa);
template <class S>
const AverageOps<S>& average_ops(Isa isa);
RandomWordRows random_word_rows_of(Isa isa);

}  // namespace seqconv::kernels
