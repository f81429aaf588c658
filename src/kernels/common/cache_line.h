#pragma once

#include <cstdint>

namespace seqconv::internal::kernels {

/// Bytes that come into a cache together.
inline constexpr int64_t kCacheLine = 64;

/// Caches of a core.
enum class OwnCache { kFirst, kSecond };

/// Brings what will be read soon into a cache. Never faults, wherever it is.
template <OwnCache kCache = OwnCache::kFirst>
[[gnu::always_inline]] inline void prefetch_lines(const void* first, int64_t bytes) {
  const char* const begin = static_cast<const char*>(first);
#pragma GCC unroll 8
  for (int64_t i = 0; i < bytes; i += kCacheLine)
    __builtin_prefetch(
        begin + i,
        /*write=*/0,
        /*locality=*/kCache == OwnCache::kFirst ? 3 : 2);
}

}  // namespace seqconv::internal::kernels
