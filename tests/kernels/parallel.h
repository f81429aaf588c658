#pragma once

#include <algorithm>

#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels::testing {

/// Everything in one chunk.
inline void serial(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
  if (count > 0)
    body(0, count);
}

/// As so many threads would cut it, last chunk first.
inline ParallelFor in_chunks(int64_t chunks) {
  return [chunks](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    const int64_t size = std::max(std::max<int64_t>(grain, 1), (count + chunks - 1) / chunks);
    if (count <= 0)
      return;
    for (int64_t begin = (count - 1) / size * size; begin >= 0; begin -= size)
      body(begin, std::min(begin + size, count));
  };
}

/// The most threads imaginable: every item on its own, last first.
inline void one_by_one(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
  for (int64_t i = count - 1; i >= 0; --i)
    body(i, i + 1);
}

}  // namespace seqconv::internal::kernels::testing
