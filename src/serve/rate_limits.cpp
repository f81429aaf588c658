#include "serve/rate_limits.h"

#include <algorithm>

namespace seqconv::internal {
namespace {

// After that long a client's requests are all there again.
constexpr std::chrono::minutes kFull(1);

}  // namespace

std::optional<double> RateLimits::take(
    const std::string& client, int64_t per_minute, Clock::time_point now) {
  if (per_minute <= 0)
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (now - swept_ > kFull) {
    std::erase_if(buckets_, [&](const auto& one) { return now - one.second.filled > kFull; });
    swept_ = now;
  }
  const auto most = static_cast<double>(per_minute);
  Bucket& bucket = buckets_.try_emplace(client, Bucket{most, now}).first->second;
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - bucket.filled).count();
  bucket.left = std::min(most, bucket.left + minutes * most);
  bucket.filled = now;
  if (bucket.left < 1)
    return (1 - bucket.left) / most * 60;
  bucket.left -= 1;
  return std::nullopt;
}

size_t RateLimits::size() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

}  // namespace seqconv::internal
