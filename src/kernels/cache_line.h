#pragma once

#include <cstdint>

namespace seqconv::kernels {

/// Bytes that are fetched together.
inline constexpr int64_t kCacheLine = 64;

/// Brings what will be read soon into the first-level cache. Never faults,
/// wherever it is.
[[gnu::always_inline]] inline void fetch_lines(
    const void* first,
    int64_t bytes) {
  const char* const begin = static_cast<const char*>(first);
#pragma GCC unroll 8
  for (int64_t i = 0; i < bytes; i += kCacheLine)
    __builtin_prefetch(begin + i, /*write=*/0, /*locality=*/3);
}

}  // namespace seqconv::kernels
