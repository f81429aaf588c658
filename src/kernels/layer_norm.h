#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/dropout.h"
#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels {

/// Forward pass of LayerNorm(residual + dropout(x)) over rows of C channels.
template <class T>
struct LayerNormForward {
  using A = AccumulatorOf<T>;
  int64_t rows = 0;
  int64_t channels = 0;
  const T* x = nullptr;         ///< [rows, C]
  const T* residual = nullptr;  ///< [rows, C], or null: zeros
  const A* weight = nullptr;    ///< [C]
  const A* bias = nullptr;      ///< [C]
  T* y = nullptr;               ///< [rows, C]
  T* normalized = nullptr;      ///< [rows, C], or null: not wanted
  A* rstd = nullptr;            ///< [rows], or null: not wanted
  double epsilon = 1e-5;
  Dropout drop;
};

/// y = (z - mean) * rstd * weight + bias with z = residual + dropout(x), mean
/// and the biased variance over a row, rstd = 1 / sqrt(variance + epsilon).
/// T: float, double, BFloat16.
template <class T>
void layer_norm(const LayerNormForward<T>& pass, const ParallelFor&);

/// Backward pass from the normalised rows and rstd alone. A gradient that is
/// null is not wanted; grad_x needs grad_z.
template <class T>
struct LayerNormBackward {
  using A = AccumulatorOf<T>;
  int64_t rows = 0;
  int64_t channels = 0;
  const T* grad_y = nullptr;      ///< [rows, C]
  const T* normalized = nullptr;  ///< [rows, C]
  const A* rstd = nullptr;        ///< [rows]
  const A* weight = nullptr;      ///< [C]
  T* grad_z = nullptr;            ///< [rows, C]: gradient of the residual
  T* grad_x = nullptr;            ///< [rows, C]
  A* grad_weight = nullptr;       ///< [C], with grad_bias
  A* grad_bias = nullptr;         ///< [C]
  Dropout drop;
};

/// grad_weight and grad_bias are summed over a fixed partition of the rows, so
/// that they do not depend on the number of threads. T: float, double,
/// BFloat16.
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& pass, const ParallelFor&);

}  // namespace seqconv::internal::kernels
