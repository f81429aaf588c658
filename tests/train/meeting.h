#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

namespace seqconv::internal::testing {

/// What waiting threads are let go with when another has failed.
struct LetGo : std::runtime_error {
  LetGo() : std::runtime_error("another thread has failed") {}
};

/// Where all threads lay something down, one combines it, and all go on.
class Meeting {
 public:
  explicit Meeting(int64_t size) : parts_(static_cast<size_t>(size)) {}

  /// `combine` is called once, in the last thread to come.
  void meet(
      int64_t rank, void* part, const std::function<void(const std::vector<void*>&)>& combine) {
    std::unique_lock lock(mutex_);
    parts_[static_cast<size_t>(rank)] = part;
    const int64_t turn = turn_;
    if (++present_ == static_cast<int64_t>(parts_.size())) {
      combine(parts_);
      present_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return turn_ != turn || failed_; });
    if (turn_ == turn)
      throw LetGo();
  }

  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<void*> parts_;
  int64_t present_ = 0;
  int64_t turn_ = 0;
  bool failed_ = false;
};

/// Adds up spans of T in the order of the ranks, for every rank the same.
template <class T>
void sum_parts(const std::vector<void*>& parts) {
  std::vector<std::span<T>> spans;
  for (void* part : parts)
    spans.push_back(*static_cast<std::span<T>*>(part));
  for (const auto& span : spans)
    if (span.size() != spans[0].size())
      throw std::logic_error("the processes sum different things");
  for (size_t i = 0; i < spans[0].size(); ++i) {
    T total = 0;
    for (const auto& span : spans)
      total += span[i];
    for (const auto& span : spans)
      span[i] = total;
  }
}

}  // namespace seqconv::internal::testing
