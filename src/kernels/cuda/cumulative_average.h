#pragma once

#include "kernels/cuda/storage.h"
#include "kernels/cumulative_average.h"

/// The cumulative average on CUDA devices; see the CPU's cumulative_average.h
/// for the rules.
namespace seqconv::internal::kernels::cuda {

/// Which way a channel is summed: from the first position on, or from the last
/// one back for the gradient, the transposed map: x is grad_y then, y grad_x.
enum class AverageOrder { kForward, kBackward };

/// Sums are float64 whatever S is. They are taken by chunks of a fixed number
/// of positions: their bits depend neither on B nor on T.
template <class S>
struct CumulativeAverage {
  AverageOrder order = AverageOrder::kForward;
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

}  // namespace seqconv::internal::kernels::cuda
