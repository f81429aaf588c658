#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace seqconv::internal {

/// Counts requests of clients, each against a limit of its own. Any thread.
class RateLimits {
 public:
  using Clock = std::chrono::steady_clock;

  /// Counts a request of `client`, which may make so many a minute, and as many at once after a
  /// minute of silence; 0: any number. A request too many is not counted: the seconds are told
  /// after which another may be made.
  std::optional<double> take(
      const std::string& client, int64_t per_minute, Clock::time_point now = Clock::now());

  /// Clients that are remembered: those of the last minute or two.
  size_t size() const;

 private:
  struct Bucket {
    double left = 0;
    Clock::time_point filled{};
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
  Clock::time_point swept_{};
};

}  // namespace seqconv::internal
