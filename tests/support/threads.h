#pragma once

#include <cstdint>
#include <filesystem>
#include <iterator>

namespace seqconv::testing {

/// How many threads there are now.
inline int64_t threads_of_this_process() {
  return std::distance(
      std::filesystem::directory_iterator("/proc/self/task"),
      std::filesystem::directory_iterator());
}

}  // namespace seqconv::testing
