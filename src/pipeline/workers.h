#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace seqconv::internal {

/// Items that may be worked at in any order, and what is done when all are.
class SharedJob {
 public:
  virtual ~SharedJob() = default;

  virtual size_t items() const = 0;
  /// By any thread, several at a time.
  virtual void work(size_t item) = 0;
  /// Once, after all items.
  virtual void finish() {}
};

/// Gives the next job; null when there are no more.
using NextJob = std::function<std::unique_ptr<SharedJob>()>;

/// Works at jobs one after another, at up to `workers` items at a time, in the
/// calling thread and in others, of which none outlives the call. `next` and
/// finish() are called in the order of the jobs, each by one thread at a time,
/// but beside each other and beside the work: while one job ends the next is
/// begun, and no more than two are there at a time. With one worker the calling
/// thread alone does all, by loops that stay lent to whom they were, and a job
/// ends before `next` is called.
///
/// Items are begun in order. Once something throws, nothing behind it is begun,
/// and when what came before it is done its exception is thrown: that which one
/// thread alone would have met. Threads without an item help the others' loops
/// (SpareThreads).
void share_jobs(int64_t workers, const NextJob& next);

/// The same for one job, in up to `workers` threads: work(i) for every i below
/// `count`.
void share_work(size_t count, int64_t workers, const std::function<void(size_t)>& work);

/// Calls work() in the calling thread, whose loops up to workers - 1 others
/// help: with one worker those that helped it before.
void work_with_help(int64_t workers, const std::function<void()>& work);

}  // namespace seqconv::internal
