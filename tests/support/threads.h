#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "base/spare_threads.h"

namespace seqconv::internal::testing {

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

/// Runs loops until one was run by two threads; fails after a minute.
inline void loop_until_helped() {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  const auto last = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (seen.size() < 2 && std::chrono::steady_clock::now() < last)
    SpareThreads::loop(64, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  EXPECT_GE(seen.size(), 2U) << "no other thread took part";
}

}  // namespace seqconv::internal::testing
