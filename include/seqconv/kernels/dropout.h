#pragma once

#include <cstdint>

#include "seqconv/kernels/parallel_for.h"

namespace seqconv::kernels {

/// One dropout of one micro-batch: element i is kept when
/// random_word(seed, i) >= drop_threshold(p), and then scaled by 1/(1-p).
/// 0 <= p < 1; p = 0 draws nothing.
struct Dropout {
  double p = 0;
  uint64_t seed = 0;
};

/// y[i] = dropout(x[i]) for i in [0, count); also its own backward pass (the
/// mask is drawn again). x and y may be the same. T: float, double.
template <class T>
void dropout(
    const T* x,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for);

/// y[i] = residual[i] + dropout(x[i]).
template <class T>
void dropout_add(
    const T* x,
    const T* residual,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for);

}  // namespace seqconv::kernels
