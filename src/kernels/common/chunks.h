#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel_for.h"

/// How passes are cut into chunks.
namespace seqconv::internal::kernels {

/// Elements that a kernel handles between two draws of random words: words and
/// data of a tile stay in the first-level cache.
inline constexpr int64_t kTile = 512;

/// Elements of one chunk of an elementwise operation. Chunks begin at multiples
/// of it, whatever the number of threads.
inline constexpr int64_t kChunk = 8 * kTile;

/// Calls body(begin, end) on ranges of elements that begin at whole chunks.
template <class Body>
void for_chunks(int64_t count, const ParallelFor& parallel_for, const Body& body) {
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  parallel_for(chunks, /*grain=*/4, [&](int64_t begin, int64_t end) {
    body(begin * kChunk, std::min(end * kChunk, count));
  });
}

/// Rows of so many elements that are worth a thread's while.
inline int64_t row_grain(int64_t elements) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, elements));
}

}  // namespace seqconv::internal::kernels
