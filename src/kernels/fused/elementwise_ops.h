#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/isa.h"
#include "kernels/layer_norm.h"

/// The inner loops of the elementwise operations between the matrix products,
/// on some elements or rows of their tensors; what they compute is said at the
/// passes. They are written in *-inl.h and compiled for each instruction set in
/// elementwise_ops.cpp.
namespace seqconv::internal::kernels {

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

/// Operations on tensors stored as S; where memory is small beside them, in the
/// type A that S is computed in. Ranges [begin, end) of elements begin at whole
/// tiles (chunks.h).
template <class S>
struct ElementwiseOps {
  using A = AccumulatorOf<S>;
  using Map = void (*)(const S* x, S* y, int64_t begin, int64_t end, Dropout);
  using PairMap = void (*)(const S* a, const S* b, S* y, int64_t begin, int64_t end, Dropout drop);
  Map relu;
  Map swish;
  Map dropout;
  PairMap dropout_add;     ///< of x and the residual
  PairMap relu_backward;   ///< of y and grad_y; drop says the scale alone
  PairMap swish_backward;  ///< of x and grad_y
  /// One row.
  void (*glu)(const S* x, S* y, int64_t channels);
  void (*glu_backward)(const S* x, const S* grad_y, S* grad_x, int64_t C);
  /// Rows [begin, end).
  void (*layer_norm)(const LayerNormForward<S>&, int64_t begin, int64_t end);
  /// The same; adds to grad_weight and grad_bias [C], and writes what else is
  /// wanted.
  void (*layer_norm_backward)(
      const LayerNormBackward<S>& pass, int64_t begin, int64_t end, A* grad_weight, A* grad_bias);
  /// One row.
  void (*cross_entropy)(const CrossEntropyRows<A>& pass, const SmoothedLoss& smoothed, int64_t row);
  /// n elements.
  void (*adam)(A* p, const A* g, A* m, A* v, int64_t n, AdamFactors<A>);
  void (*nag)(A* p, const A* g, A* buf, int64_t n, NagFactors<A>);
  double (*squared_sum)(const A* x, int64_t n);
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

#ifdef SEQCONV_FLOAT_ONLY
#define SEQCONV_INSTANTIATE(pass) template decltype(pass<float>) pass<float>
#define SEQCONV_INSTANTIATE_STORED(pass) SEQCONV_INSTANTIATE(pass)
#else
/// Compiles the function template `pass` for both types that are computed in.
#define SEQCONV_INSTANTIATE(pass)             \
  template decltype(pass<float>) pass<float>; \
  template decltype(pass<double>) pass<double>
/// For all that tensors are stored in.
#define SEQCONV_INSTANTIATE_STORED(pass) \
  SEQCONV_INSTANTIATE(pass);             \
  template decltype(pass<BFloat16>) pass<BFloat16>
#endif

}  // namespace seqconv::internal::kernels
