#include "kernels/common/tiles.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "kernels/common/cache_line.h"

namespace seqconv::kernels {
namespace {

/// Bytes of this processor's cache of a level, or 0.
int64_t cache_of_level(const char* level) {
  const std::string file =
      "/sys/devices/system/cpu/cpu0/cache/index" + std::string(level) + "/size";
  int64_t size = 0;
  char unit = 0;
  if (std::ifstream(file) >> size >> unit)
    return size * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
  return 0;
}

/// Bytes of the last-level cache that this processor shares with its
/// neighbours, or 0. sysconf() adds up those of all sockets on some machines.
int64_t last_level_cache() {
  for (const char* level : {"3", "2"})
    if (const int64_t size = cache_of_level(level); size > 0)
      return size;
#ifdef _SC_LEVEL3_CACHE_SIZE
  return sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  return 0;
#endif
}

/// Whether the last-level cache belongs to a whole socket (Intel's servers): a
/// line from there takes nearly as long as from memory, and most of it is taken
/// by others.
bool slow_last_level() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

/// From how many bytes on a pass does what CachePlan says.
struct CacheLimits {
  int64_t prefetches;  ///< moved
  int64_t light;       ///< read by a light pass: streams
  int64_t streams;     ///< read by another one
  int64_t early;  ///< read and kept: a pass that may do so early prefetches
  int64_t from_memory;  ///< any other one

  /// What is read, if it takes half of the cache, stays there from call to call
  /// only if what is written does not drive it out. Others take their share of
  /// the cache too: less than all of it is ours, and at times hardly any.
  static CacheLimits of_cache(int64_t bytes) {
    constexpr int64_t kOwnCache = 1 << 20;
    return {
        .prefetches = kOwnCache,
        .light = bytes / 2,
        .streams = bytes / 2,
        .early = bytes / 5 * 2,
        .from_memory = bytes / 5 * 3};
  }

  /// Multiples of the processors' own caches, measured where the last one is
  /// far: stores wait for lines of it, unless there is work to hide that. Lines
  /// that were asked for early hold up those that come from the second-level
  /// cache, so that prefetching is worth while only for what is further away.
  CacheLimits but_own(int64_t bytes) const {
    const int64_t memory_from = std::min(from_memory, 20 * bytes);
    return {
        .prefetches = std::max(prefetches, std::min(10 * bytes, memory_from)),
        .light = std::min(light, bytes),
        .streams = std::min(streams, 8 * bytes),
        .early = std::min(early, memory_from),
        .from_memory = memory_from};
  }

  static CacheLimits of_system() {
    const CacheLimits limits = of_cache(last_level_cache());
    const int64_t own = cache_of_level("2") *
        static_cast<int64_t>(std::thread::hardware_concurrency());
    return slow_last_level() && own > 0 ? limits.but_own(own) : limits;
  }
};

}  // namespace

CachePlan cache_plan(
    int64_t cache,
    const void* out,
    int64_t bytes_of_head,
    const PassBytes& bytes) {
  static const CacheLimits of_system = CacheLimits::of_system();
  const CacheLimits limits =
      cache == 0 ? of_system : CacheLimits::of_cache(cache);
  // Streaming stores are those of whole lines.
  const bool whole = reinterpret_cast<uintptr_t>(out) % kCacheLine == 0 &&
      bytes_of_head % kCacheLine == 0;
  const int64_t from = bytes.light ? limits.light : limits.streams;
  const bool streams = whole && from > 0 && bytes.read >= from;
  const int64_t kept = bytes.read + (streams ? 0 : bytes.out) + bytes.also;
  return {
      .prefetches = bytes.read + bytes.out + bytes.also > limits.prefetches,
      .streams = streams,
      .from_memory = kept > (bytes.early ? limits.early : limits.from_memory)};
}

}  // namespace seqconv::kernels
