#pragma once

#include "seqconv/kernels/cuda/storage.h"
#include "seqconv/kernels/cumulative_average.h"

/// The cumulative average on CUDA devices; see the CPU's cumulative_average.h
/// for the rules and cuda/conv.h for what holds of pointers, streams and types.
namespace seqconv::kernels::cuda {

/// Sums are float64 whatever S is. They are taken by chunks of a fixed number
/// of positions: their bits depend neither on B nor on T.
template <class S>
struct CumulativeAverage {
  AverageShape shape;
  const int64_t* lengths = nullptr;  ///< [B] or null; clamped to 0 .. T
  const S* x = nullptr;              ///< [B, T, C]
  S* y = nullptr;                    ///< [B, T, C]
  double* workspace = nullptr;       ///< cumulative_average_workspace elements
};

/// The next T' = shape.steps inputs of N = shape.batch streams.
template <class S>
struct CumulativeAverageStep {
  AverageShape shape;
  const int64_t* position = nullptr;  ///< one element: inputs already seen
  const S* x = nullptr;               ///< [N, T', C]
  double* sums = nullptr;             ///< [N, C]: of all inputs so far, updated
  S* y = nullptr;                     ///< [N, T', C]
};

/// Elements of workspace that a pass of either direction wants.
template <class S>
int64_t cumulative_average_workspace(const AverageShape& shape);

template <class S>
void cumulative_average(const CumulativeAverage<S>& args, Stream stream);
/// The transposed map: x is grad_y, y is grad_x.
template <class S>
void cumulative_average_backward(
    const CumulativeAverage<S>& args,
    Stream stream);
template <class S>
void cumulative_average_step(
    const CumulativeAverageStep<S>& args,
    Stream stream);

}  // namespace seqconv::kernels::cuda
