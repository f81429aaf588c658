#pragma once

#include <cstdint>
#include <vector>

namespace seqconv::kernels {

/// What stands beside packed int8 weights: see OutputSides.
struct OutputScales {
  std::vector<float> scales;         ///< [outputs]
  std::vector<int32_t> corrections;  ///< [outputs]
};

}  // namespace seqconv::kernels
