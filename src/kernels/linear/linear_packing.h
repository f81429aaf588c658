#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/common/tiles.h"
#include "kernels/linear/linear_kernels.h"

namespace seqconv::internal::kernels {

/// What stands beside packed int8 weights: see OutputSides.
struct OutputScales {
  std::vector<float> scales;           ///< [outputs]
  std::vector<int32_t> compensations;  ///< [outputs]
};

/// Groups of K inputs in a panel, those of zeros counted.
inline int64_t groups_of(const LinearKernels& ops, int64_t K) {
  const int64_t step = ops.group * ops.group_step;
  return ceil_div(K, step) * ops.group_step;
}

/// Unset memory for weights. On pages of 2 MB where it fills one and the system
/// has them: weights are read once from end to end, and looking up so many
/// small pages takes a sixth of the time.
std::shared_ptr<std::byte> allocate_weights(int64_t size);

}  // namespace seqconv::internal::kernels
