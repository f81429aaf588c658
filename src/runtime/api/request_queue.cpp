#include "runtime/api/request_queue.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/spare_threads.h"
#include "runtime/api/forks.h"

namespace seqconv::internal {
namespace {

/// Requests that one thread takes at a time, at most.
constexpr size_t kMostTogether = 64;
/// Fewer than these are not shared out among threads: a batch of few takes about as long.
constexpr size_t kFewTogether = 8;
/// Requests that come one right after the other are waited for so long, and no longer in all.
constexpr std::chrono::microseconds kNextWithin(50);
constexpr std::chrono::milliseconds kGatherMost(1);
/// Time between two looks at requests that wait while all threads are busy.
constexpr std::chrono::milliseconds kSweepEvery(10);

/// The result of a request whose answer threw.
OwnResult failure_of(const std::exception& error) noexcept {
  try {
    if (!is_no_memory(error))
      return make_failure(Status::kFailed, message_of(error).c_str());
  } catch (const std::bad_alloc&) {}
  return make_failure(Status::kOutOfMemory, kOutOfMemory);
}

}  // namespace

/// The threads of one process and what waits for them.
class RequestQueue::Workers {
 public:
  Workers(const Answerer& answerer, size_t threads, size_t most, std::chrono::milliseconds max_wait)
      : answerer_(answerer), most_threads_(threads), most_waiting_(most), max_wait_(max_wait) {
    spare_.when_help_is_wanted([this] { start_helpers(); });
  }
  ~Workers();

  bool is_of_this_process() const { return forks_ == count_forks(); }
  void add(Requests& one);

 private:
  void start_thread();
  void start_helpers();
  void work();
  void wait(std::unique_lock<std::mutex>& lock);
  void wake_one();
  bool take(Requests& taken);
  void gather(std::unique_lock<std::mutex>& lock) const;
  void answer_all(Requests& taken) noexcept;
  void sweep();

  const Answerer& answerer_;
  const size_t most_threads_;
  const size_t most_waiting_;
  const std::chrono::milliseconds max_wait_;
  const uint64_t forks_ = count_forks();
  std::mutex mutex_;
  std::condition_variable changed_;
  SpareThreads spare_;
  std::atomic<bool> stopping_ = false;
  std::atomic<Clock::time_point> next_sweep_ = Clock::time_point::min();
  // Under the lock:
  Requests waiting_;
  Clock::time_point waiting_since_;  // the oldest of them, if any, or one before it
  size_t idle_ = 0;                  // threads
  int64_t helping_ = 0;              // of them, those that help others until there are requests
  std::vector<std::thread> threads_;
};

RequestQueue::Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    spare_.call_back();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
  Requests rest;  // of which a hearer may want to add more: they are refused
  {
    const std::lock_guard lock(mutex_);
    rest.swap(waiting_);
  }
  for (Request& waiting : rest)
    waiting.tell_given_up(Status::kCancelled);
}

void RequestQueue::Workers::add(Requests& one) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_)
      fail_call(SEQCONV_CANCELLED, "the model is being closed: it takes no request");
    if (most_waiting_ > 0 && waiting_.size() >= most_waiting_)
      fail_call(
          SEQCONV_QUEUE_FULL,
          "queue_limit is ",
          most_waiting_,
          ", and as many requests wait: this one is refused");
    if (waiting_.size() >= idle_ && threads_.size() < most_threads_)
      start_thread();
    if (waiting_.empty())
      waiting_since_ = Clock::now();
    waiting_.splice(waiting_.end(), one);
    wake_one();
  }
}

/// Leaves the work to the threads that are there if the system gives no other.
void RequestQueue::Workers::start_thread() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    if (threads_.empty())
      fail_call(SEQCONV_ERROR, "no thread can be started: ", error.what());
  } catch (const std::bad_alloc&) {
    if (threads_.empty())
      throw;
  }
}

/// Called once, by a thread whose loop others could take parts of.
void RequestQueue::Workers::start_helpers() {
  const std::lock_guard lock(mutex_);
  const size_t most = std::min<size_t>(most_threads_, 1 + SpareThreads::kMostHelping);
  for (size_t count = threads_.size(); count < most && !stopping_; ++count)
    start_thread();
}

/// Waits until there may be a request. Threads help meanwhile: a request that is alone is
/// answered by all of them.
void RequestQueue::Workers::wait(std::unique_lock<std::mutex>& lock) {
  if (helping_ >= SpareThreads::kMostHelping)
    return changed_.wait(lock);
  const uint32_t calls = spare_.calls();
  ++helping_;
  lock.unlock();
  spare_.help(calls);
  lock.lock();
  --helping_;
}

/// Wakes a thread that does not help, or all that do.
void RequestQueue::Workers::wake_one() {
  if (idle_ > static_cast<size_t>(helping_))
    changed_.notify_one();
  else if (idle_ > 0)
    spare_.call_back();
}

void RequestQueue::Workers::work() {
  for (Requests taken; take(taken); taken.clear())
    answer_all(taken);
}

/// Waits as long as requests keep coming, or for max_wait, so that they share a batch.
void RequestQueue::Workers::gather(std::unique_lock<std::mutex>& lock) const {
  const Clock::time_point end = Clock::now() + kGatherMost;
  const auto may_wait = [&](Clock::time_point now) {
    return max_wait_.count() > 0 && !waiting_.empty() && now < waiting_since_ + max_wait_;
  };
  size_t before = 0;
  for (auto now = Clock::now(); !stopping_; now = Clock::now()) {
    const bool are_coming = waiting_.size() > before && now < end;
    if ((!are_coming && !may_wait(now)) || waiting_.size() >= most_threads_ * kMostTogether)
      return;
    before = waiting_.size();
    lock.unlock();
    std::this_thread::sleep_for(kNextWithin);
    lock.lock();
  }
}

bool RequestQueue::Workers::take(Requests& taken) {
  std::unique_lock lock(mutex_);
  ++idle_;
  do {
    while (!stopping_ && waiting_.empty())
      wait(lock);
    gather(lock);
  } while (!stopping_ && waiting_.empty());  // others may have taken all
  --idle_;
  if (stopping_)
    return false;
  // Other threads shall have their share, those too that are at work and soon done with it.
  const size_t share = (waiting_.size() + most_threads_ - 1) / most_threads_;
  const size_t count = std::min(std::max(share, kFewTogether), kMostTogether);
  // Requests that are not alike would come after these, not beside them. The first
  // is taken whatever it is: NaN is not even equal to itself.
  const Request& first = waiting_.front();
  for (auto next = waiting_.begin(); next != waiting_.end() && taken.size() < count;) {
    const auto own = next++;
    if (taken.empty() || alike(*own, first))
      taken.splice(taken.end(), waiting_, own);
  }
  if (!waiting_.empty())
    wake_one();
  return true;
}

/// A fault that is not a request's own lets them go one by one.
void RequestQueue::Workers::answer_all(Requests& taken) noexcept {
  const SpareThreads::Lending lending(spare_);
  const Busy busy{.closing = &stopping_, .meanwhile = [this] { sweep(); }};
  try {
    std::vector<Request*> requests;
    for (Request& request : taken)
      requests.push_back(&request);
    answer(answerer_, requests, busy);
  } catch (const std::exception&) {}
  for (Request& request : taken) {
    if (request.is_told())
      continue;
    try {
      answer(answerer_, {&request}, busy);
    } catch (const std::exception& error) {
      request.tell(failure_of(error));
    }
  }
}

/// Tells requests that wait and were given up, now and then.
void RequestQueue::Workers::sweep() {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = next_sweep_;
  if (now < next || !next_sweep_.compare_exchange_strong(next, now + kSweepEvery))
    return;
  Requests given_up;
  {
    const std::lock_guard lock(mutex_);
    for (auto own = waiting_.begin(); own != waiting_.end();) {
      const auto at = own++;
      if (at->given_up() != Status::kOk)
        given_up.splice(given_up.end(), waiting_, at);
    }
  }
  for (Request& request : given_up)
    request.tell_given_up(request.given_up());
}

RequestQueue::RequestQueue(const Answerer& answerer, int64_t threads, const RuntimeOptions& options)
    : answerer_(answerer),
      threads_(static_cast<size_t>(threads)),
      most_(static_cast<size_t>(options.queue_limit)),
      max_wait_(options.max_wait_ms),
      workers_(new Workers(answerer_, threads_, most_, max_wait_)) {}

RequestQueue::~RequestQueue() {
  Workers* const workers = workers_;
  if (workers->is_of_this_process())
    delete workers;
}

RequestQueue::Workers& RequestQueue::workers() {
  Workers* workers = workers_;
  while (!workers->is_of_this_process()) {
    auto own = std::make_unique<Workers>(answerer_, threads_, most_, max_wait_);
    if (workers_.compare_exchange_strong(workers, own.get()))
      return *own.release();
  }
  return *workers;
}

void RequestQueue::add(Requests& one) {
  workers().add(one);
}

}  // namespace seqconv::internal
