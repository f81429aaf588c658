#include "pipeline/workers.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/spare_threads.h"

namespace seqconv::internal {
namespace {

/// A job under way.
struct Progress {
  std::unique_ptr<SharedJob> job;
  size_t number;  ///< of the job
  size_t items;   ///< those to do: fewer once something has thrown
  size_t begun = 0;
  size_t done = 0;
  size_t failed = 0;  ///< the lowest item that threw
  std::exception_ptr failure{};

  bool is_over() const { return done == items; }
};

/// Holds what the threads of one call have in common.
class WorkerPool {
 public:
  /// reads_ahead: one more thread may wait for the next job while all work.
  WorkerPool(int64_t workers, bool reads_ahead, const NextJob& next)
      : next_(next),
        most_jobs_(workers > 1 ? 2 : 1),
        workers_(std::max<int64_t>(workers, 1)),
        readers_(workers > 1 && reads_ahead ? 1 : 0) {
    spare_.when_help_is_wanted([this] {
      const Lock lock(mutex_);
      have_threads(std::ssize(threads_) + 1 + SpareThreads::kMostHelping);
    });
  }

  /// Does all there is to do, in the calling thread and as many others as have
  /// something to do: none outlives the call. Throws what was thrown.
  void work_together() {
    run();
    threads_.clear();  // there is nothing left that would start one more
    rethrow();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Works until there is nothing left.
  void run() {
    Lock lock(mutex_);
    while (reading_ || finishing_ || !ended_ || !jobs_.empty())
      if (!take_step(lock))
        wait(lock);
    spare_.call_back();
  }

  void rethrow() const {
    if (const std::exception_ptr& first = failure_ ? failure_ : read_failure_)
      std::rethrow_exception(first);
  }

  void have_threads(int64_t count);
  void have_threads_for_work();
  bool take_step(Lock& lock);
  void wait(Lock& lock);
  void read(Lock& lock);
  void work(Progress& progress, Lock& lock);
  void finish_first(Lock& lock);
  void begin_nothing_from(size_t job);
  template <class Function>
  std::exception_ptr unlocked(Lock& lock, const Function& function);

  const NextJob& next_;
  const size_t most_jobs_;
  const int64_t workers_;
  const int64_t readers_;
  SpareThreads spare_;
  std::mutex mutex_;
  // Under the lock:
  std::deque<Progress> jobs_;
  size_t jobs_read_ = 0;
  int64_t working_ = 0;  // threads
  int64_t helping_ = 0;
  bool ended_ = false;  // no further job is wanted, or there is none
  bool reading_ = false;
  bool finishing_ = false;
  std::exception_ptr failure_;         // of the first job that failed
  std::exception_ptr read_failure_;    // of what is behind all jobs
  std::vector<std::jthread> threads_;  // but for the caller's
};

/// Starts threads until there are so many, the caller's among them, or as many
/// as shall be, or as the system gives.
void WorkerPool::have_threads(int64_t count) {
  count = std::min(count, workers_ + readers_);
  try {
    while (std::ssize(threads_) + 1 < count)
      threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {}
}

/// As many as there are items to work at.
void WorkerPool::have_threads_for_work() {
  int64_t items = working_;
  for (const Progress& progress : jobs_)
    items += static_cast<int64_t>(progress.items - progress.begun);
  have_threads(std::min(items, workers_) + readers_);
}

/// Does one thing that can be done now, if there is any.
bool WorkerPool::take_step(Lock& lock) {
  if (!finishing_ && !jobs_.empty() && jobs_.front().is_over()) {
    finish_first(lock);
    return true;
  }
  for (Progress& progress : jobs_)
    if (working_ < workers_ && progress.begun < progress.items) {
      work(progress, lock);
      return true;
    }
  if (!ended_ && !reading_ && jobs_.size() < most_jobs_) {
    read(lock);
    return true;
  }
  return false;
}

/// Helps, where no more threads work and help than shall.
void WorkerPool::wait(Lock& lock) {
  const uint32_t calls = spare_.calls();
  const bool helps = working_ + helping_ < workers_;
  helping_ += helps;
  lock.unlock();
  helps ? spare_.help(calls) : spare_.rest(calls);
  lock.lock();
  helping_ -= helps;
}

/// What `function` threw. Others may take the lock meanwhile; those that wait
/// look again once the caller gives it away.
template <class Function>
std::exception_ptr WorkerPool::unlocked(Lock& lock, const Function& function) {
  std::exception_ptr failure;
  lock.unlock();
  try {
    function();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  spare_.call_back();
  return failure;
}

void WorkerPool::read(Lock& lock) {
  std::unique_ptr<SharedJob> job;
  reading_ = true;
  read_failure_ = unlocked(lock, [&] { job = next_(); });
  reading_ = false;
  ended_ |= job == nullptr;
  if (ended_)
    return;
  try {
    const size_t items = job->items();
    jobs_.push_back({std::move(job), jobs_read_++, items});
    have_threads_for_work();
  } catch (const std::bad_alloc&) {
    read_failure_ = std::current_exception();
    ended_ = true;
  }
}

void WorkerPool::work(Progress& progress, Lock& lock) {
  const size_t item = progress.begun++;
  if (++working_ + helping_ > workers_)
    spare_.call_back();
  auto failure = unlocked(lock, [&] {
    std::optional<SpareThreads::Lending> lending;
    if (workers_ > 1)
      lending.emplace(spare_);
    progress.job->work(item);
  });
  --working_;
  ++progress.done;
  if (!failure)
    return;
  if (!progress.failure || item < progress.failed) {
    progress.failed = item;
    progress.failure = std::move(failure);
  }
  begin_nothing_from(progress.number);
}

/// Where it failed, or one before it, it only goes.
void WorkerPool::finish_first(Lock& lock) {
  Progress& first = jobs_.front();
  if (!failure_ && !first.failure) {
    finishing_ = true;
    first.failure = unlocked(lock, [&] { first.job->finish(); });
    finishing_ = false;
  }
  if (!failure_)
    failure_ = first.failure;
  jobs_.pop_front();
  if (failure_)
    begin_nothing_from(0);
}

void WorkerPool::begin_nothing_from(size_t job) {
  for (Progress& progress : jobs_)
    if (progress.number >= job)
      progress.items = progress.begun;
  ended_ = true;
}

class OneJob : public SharedJob {
 public:
  OneJob(size_t items, const std::function<void(size_t)>& work) : items_(items), work_(work) {}

  size_t items() const override { return items_; }
  void work(size_t item) override { work_(item); }

 private:
  size_t items_;
  const std::function<void(size_t)>& work_;
};

/// `count` threads that run `function`, or as many as the system gives.
template <class Function>
std::vector<std::jthread> threads_of(int64_t count, const Function& function) {
  std::vector<std::jthread> threads;
  try {
    for (int64_t i = 0; i < count; ++i)
      threads.emplace_back(function);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {}
  return threads;
}

}  // namespace

void share_jobs(int64_t workers, const NextJob& next) {
  WorkerPool(workers, /*reads_ahead=*/true, next).work_together();
}

void share_work(size_t count, int64_t workers, const std::function<void(size_t)>& work) {
  if (count == 0)
    return;
  std::unique_ptr<SharedJob> job = std::make_unique<OneJob>(count, work);
  const NextJob next = [&] { return std::move(job); };
  WorkerPool(workers, /*reads_ahead=*/false, next).work_together();
}

void work_with_help(int64_t workers, const std::function<void()>& work) {
  if (workers <= 1)
    return work();
  struct Help {
    explicit Help(int64_t count) {
      spare.when_help_is_wanted([this, count] {
        threads = threads_of(count, [this, calls = spare.calls()] { spare.help(calls); });
      });
    }
    ~Help() { spare.call_back(); }

    SpareThreads spare;
    std::vector<std::jthread> threads;
  } help(std::min(workers - 1, SpareThreads::kMostHelping));
  const SpareThreads::Lending lending(help.spare);
  work();
}

}  // namespace seqconv::internal
