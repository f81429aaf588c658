#pragma once

#include <cstdint>

#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/cross_entropy.h"
#include "seqconv/kernels/dropout.h"
#include "seqconv/kernels/isa.h"
#include "seqconv/kernels/layer_norm.h"

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
  using Map = void (*)(const T* x, T* y, int64_t begin, int64_t end, Dropout);
  using PairMap = void (*)(
      const T* a,
      const T* b,
      T* y,
      int64_t begin,
      int64_t end,
      Dropout drop);
  Map relu;
  Map swish;
  Map dropout;
  PairMap dropout_add;     ///< of x and the residual
  PairMap relu_backward;   ///< of y and grad_y; drop says the scale alone
  PairMap swish_backward;  ///< of x and grad_y
  /// One row.
  void (*glu)(const T* x, T* y, int64_t channels);
  void (*glu_backward)(const T* x, const T* grad_y, T* grad_x, int64_t C);
  /// Rows [begin, end).
  void (*layer_norm)(const LayerNormForward<T>&, int64_t begin, int64_t end);
  /// The same; adds to grad_weight and grad_bias [C], and writes what else is
  /// wanted.
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
  /// n elements.
  void (*adam)(T* p, const T* g, T* m, T* v, int64_t n, AdamFactors<T>);
  void (*nag)(T* p, const T* g, T* buf, int64_t n, NagFactors<T>);
  double (*squared_sum)(const T* x, int64_t n);
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
struct AverageOps {
  using AddRows = void (*)(const AverageRows<S>& rows, double* sums);
  /// sums += x[t]; y[t] = sums / (t + 1).
  AddRows forward;
  /// sums += x[t] / (t + 1); y[t] = sums; from the last row to the first.
  AddRows backward;
};

using RandomWordRows = decltype(&random_word_rows);

template <class T>
const ElementwiseOps<T>& elementwise_ops(Isa isa);
template <class S>
const AverageOps<S>& average_ops(Isa isa);
RandomWordRows random_word_rows_of(Isa isa);

/// Compiles the function template `pass` for both types of ElementwiseOps.
#define SEQCONV_INSTANTIATE(pass)             \
  template decltype(pass<float>) pass<float>; \
  template decltype(pass<double>) pass<double>

}  // namespace seqconv::kernels
