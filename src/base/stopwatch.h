#pragma once

#include <chrono>

namespace seqconv::internal {

/// Measures seconds of work: it can be stopped while something else runs.
class Stopwatch {
 public:
  void start() { begun_ = Clock::now(); }
  /// Seconds since start() or the last lap.
  double lap() {
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - begun_;
    begun_ = now;
    return passed.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace seqconv::internal
