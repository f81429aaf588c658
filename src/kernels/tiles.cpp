#include "kernels/tiles.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "kernels/cache_line.h"

namespace seqconv::kernels {
namespace {

/// Bytes of the last-level cache that this processor shares with its
/// neighbours, or 0. sysconf() adds up those of all sockets on some machines.
int64_t last_level_cache() {
  for (const char* level : {"3", "2"}) {
    const std::string file = "/sys/devices/system/cpu/cpu0/cache/index" +
        std::string(level) + "/size";
    int64_t size = 0;
    char unit = 0;
    if (std::ifstream(file) >> size >> unit)
      return size * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  return sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  return 0;
#endif
}

}  // namespace

CachePlan cache_plan(
    int64_t cache,
    const void* out,
    int64_t bytes_of_head,
    const PassBytes& bytes) {
  constexpr int64_t kOwnCache = 1 << 20;
  static const int64_t of_system = last_level_cache();
  if (cache == 0)
    cache = of_system;
  // Streaming stores are those of whole lines.
  const bool whole = reinterpret_cast<uintptr_t>(out) % kCacheLine == 0 &&
      bytes_of_head % kCacheLine == 0;
  // What is read, if it takes half of the cache, stays there from call to call
  // only if what is written does not drive it out. Others take their share of
  // the cache too: less than all of it is ours.
  const bool streams = whole && cache > 0 && bytes.read >= cache / 2;
  const int64_t kept = bytes.read + (streams ? 0 : bytes.out) + bytes.also;
  return {
      .far = bytes.read + bytes.out + bytes.also > kOwnCache,
      .streams = streams,
      .fetches = kept > cache / 5 * 3};
}

}  // namespace seqconv::kernels
