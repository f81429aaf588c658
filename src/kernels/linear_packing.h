#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linear_kernels.h"
#include "kernels/tiles.h"

namespace seqconv::kernels {

/// What stands beside packed int8 weights: see OutputSides.
struct OutputScales {
  std::vector<float> scales;         ///< [outputs]
  std::vector<int32_t> corrections;  ///< [outputs]
};

/// Groups of K inputs in a panel, those of zeros counted.
inline int64_t groups_of(const LinearKernels& ops, int64_t K) {
  const int64_t step = ops.group * ops.group_step;
  return ceil_div(K, step) * ops.group_step;
}

}  // namespace seqconv::kernels
