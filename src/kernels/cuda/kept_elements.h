#pragma once

#include <cstdint>

#include "kernels/cuda/storage.h"

namespace seqconv::internal::kernels::cuda {

/// Which elements a dropout keeps: kept[i] is whether random_word(*seed,
/// first + i) >= threshold (base/random.h).
struct KeptElements {
  const int64_t* seed = nullptr;  ///< one element
  int64_t first = 0;
  int64_t count = 0;
  uint32_t threshold = 0;
  bool* kept = nullptr;  ///< [count]
};

}  // namespace seqconv::internal::kernels::cuda
