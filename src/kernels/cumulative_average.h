#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels {

/// Sizes of a cumulative average over x [B, T, C].
struct AverageShape {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
};

/// y[t] = (x[0] + ... + x[t]) / (t + 1) for t < length, zero beyond. Sums are
/// float64 whatever S is (float, double or BFloat16), so that the error does
/// not grow with T. A channel is summed by one thread, in order.
template <class S>
struct CumulativeAverage {
  AverageShape shape;
  const int64_t* lengths = nullptr;  ///< [B] or null
  const S* x = nullptr;              ///< [B, T, C]
  S* y = nullptr;                    ///< [B, T, C]
};

template <class S>
void cumulative_average(const CumulativeAverage<S>& args, const ParallelFor&);

/// The transposed map: x is grad_y, y is grad_x,
/// y[s] = sum over s <= t < length of x[t] / (t + 1).
template <class S>
void cumulative_average_backward(const CumulativeAverage<S>& args, const ParallelFor& parallel_for);

/// The next T' = shape.steps inputs of N = shape.batch streams.
template <class S>
struct CumulativeAverageStep {
  AverageShape shape;
  int64_t position = 0;    ///< inputs already seen
  const S* x = nullptr;    ///< [N, T', C]
  double* sums = nullptr;  ///< [N, C]: of all inputs so far, updated
  S* y = nullptr;          ///< [N, T', C]
};

template <class S>
void cumulative_average_step(const CumulativeAverageStep<S>& args, const ParallelFor& parallel_for);

}  // namespace seqconv::internal::kernels
