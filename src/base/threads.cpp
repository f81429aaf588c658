#include "seqconv/base/threads.h"

#include <algorithm>
#include <thread>

#include "seqconv/base/log.h"

namespace seqconv {

int64_t thread_count(int64_t asked) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (asked <= 0)
    return cores;
  const int64_t most = 4 * cores;
  if (asked > most)
    log_warning(
        asked,
        " threads were asked for, but there are ",
        cores,
        " cores: using ",
        most);
  return std::min(asked, most);
}

}  // namespace seqconv
