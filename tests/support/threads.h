#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <thread>

namespace seqconv::testing {

/// How many threads there are now.
inline int64_t threads_of_this_process() {
  return std::distance(
      std::filesystem::directory_iterator("/proc/self/task"),
      std::filesystem::directory_iterator());
}

/// Whether no more than `count` are left: one that was waited for is listed a
/// moment longer.
inline bool leaves_threads(int64_t count) {
  for (int i = 0; i < 1000 && threads_of_this_process() > count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_of_this_process() <= count;
}

}  // namespace seqconv::testing
