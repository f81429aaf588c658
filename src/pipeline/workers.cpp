#include "workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace seqconv {
namespace {

/// What the threads of one call have in common.
class SharedWork {
 public:
  SharedWork(size_t count, const std::function<void(size_t)>& work)
      : count_(count), work_(work), failed_(count) {}

  void run() {
    while (!stopped_) {
      const size_t item = next_++;
      if (item >= count_)
        return;
      try {
        work_(item);
      } catch (...) {
        keep(item, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (failure_)
      std::rethrow_exception(failure_);
  }

 private:
  void keep(size_t item, std::exception_ptr failure) {
    stopped_ = true;
    const std::lock_guard lock(mutex_);
    if (item >= failed_)
      return;
    failed_ = item;
    failure_ = std::move(failure);
  }

  const size_t count_;
  const std::function<void(size_t)>& work_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  size_t failed_;  // the lowest item that threw
  std::exception_ptr failure_;
};

}  // namespace

void share_work(
    size_t count,
    int64_t workers,
    const std::function<void(size_t)>& work) {
  SharedWork shared(count, work);
  {
    std::vector<std::jthread> others;
    const int64_t threads = std::min(workers, static_cast<int64_t>(count));
    try {
      for (int64_t i = 1; i < threads; ++i)
        others.emplace_back([&] { shared.run(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there do the work.
    } catch (const std::bad_alloc&) {}
    shared.run();
  }
  shared.rethrow();
}

}  // namespace seqconv
