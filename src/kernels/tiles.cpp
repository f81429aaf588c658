#include "kernels/tiles.h"

#include <unistd.h>

namespace seqconv::kernels {

bool exceeds_cache(int64_t bytes) {
#ifdef _SC_LEVEL3_CACHE_SIZE
  static const int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  constexpr int64_t cache = 0;
#endif
  return cache > 0 && bytes > cache;
}

}  // namespace seqconv::kernels
