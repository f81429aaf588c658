#include "runtime/api/request_queue.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/api/conversions.h"

namespace seqconv {
namespace {

/// Requests that one thread takes at a time, at most.
constexpr size_t kMostTogether = 64;

std::atomic<uint64_t> forks_so_far = 0;
/// False where there is not memory enough.
const bool kCountsForks = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; }) == 0;

/// Counts the forks that led from the process that loaded the library to this
/// one.
uint64_t forks() {
  if (!kCountsForks)
    throw std::bad_alloc();
  return forks_so_far;
}

}  // namespace

/// A request and to whom its result goes.
class Waiting {
 public:
  Waiting(internal::TranslationInput request, const CancelToken& cancel)
      : request_(std::move(request)), cancel_(cancel) {}

  const internal::TranslationInput& request() const { return request_; }
  std::future<TranslationResult> future() { return promise_.get_future(); }
  bool is_told() const { return is_told_; }
  bool is_cancelled() const { return cancel_.is_cancelled(); }

  /// The first result is the one.
  void tell(TranslationResult result) {
    if (std::exchange(is_told_, true))
      return;
    promise_.set_value(std::move(result));
  }
  void tell(Status status, const char* error) {
    if (is_told_)
      return;
    TranslationResult result;
    internal::set_failure(result, status, error);
    tell(std::move(result));
  }
  void cancel() { tell(Status::kCancelled, "cancelled before it was done"); }

 private:
  internal::TranslationInput request_;
  CancelToken cancel_;
  std::promise<TranslationResult> promise_;
  bool is_told_ = false;
};

/// The threads of one process and what waits for them.
class RequestQueue::Workers {
 public:
  Workers(const internal::Translator& translator, size_t threads)
      : translator_(translator), most_threads_(threads) {}
  ~Workers();

  bool is_of_this_process() const { return forks_ == forks(); }
  std::future<TranslationResult> add(internal::TranslationInput request, const CancelToken& cancel);

 private:
  using Requests = std::list<Waiting>;

  void start_thread();
  void work();
  bool take(Requests& taken);
  void translate(Requests& taken) noexcept;
  void translate_together(const std::vector<Waiting*>& requests) const;
  bool stops(const std::vector<Waiting*>& requests) const;

  const internal::Translator& translator_;
  const size_t most_threads_;
  const uint64_t forks_ = forks();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_ = false;
  // Under the lock:
  Requests waiting_;
  size_t idle_ = 0;  // threads
  size_t busy_ = 0;
  std::vector<std::thread> threads_;
};

RequestQueue::Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
  for (Waiting& waiting : waiting_)
    waiting.cancel();
}

std::future<TranslationResult> RequestQueue::Workers::add(
    internal::TranslationInput request, const CancelToken& cancel) {
  Requests own;
  std::future<TranslationResult> future = own.emplace_back(std::move(request), cancel).future();
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= idle_ && threads_.size() < most_threads_)
      start_thread();
    waiting_.splice(waiting_.end(), own);
  }
  changed_.notify_one();
  return future;
}

/// Leaves the work to the threads that are there if the system gives no other.
void RequestQueue::Workers::start_thread() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    if (threads_.empty())
      internal::fail("no thread can be started: ", error.what());
  } catch (const std::bad_alloc&) {
    if (threads_.empty())
      throw;
  }
}

void RequestQueue::Workers::work() {
  for (Requests taken; take(taken); taken.clear()) {
    translate(taken);
    const std::lock_guard lock(mutex_);
    --busy_;
  }
}

bool RequestQueue::Workers::take(Requests& taken) {
  std::unique_lock lock(mutex_);
  ++idle_;
  changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
  --idle_;
  if (stopping_)
    return false;
  // Threads without work shall have their share, those that have just been
  // started too.
  const size_t free = most_threads_ - busy_++;
  const size_t share = (waiting_.size() + free - 1) / free;
  const size_t count = std::min(share, kMostTogether);
  // Those with other options would come after these, not beside them. The first
  // is taken whatever they are: NaN is not even equal to itself.
  const internal::TranslationInput& first = waiting_.front().request();
  for (auto next = waiting_.begin(); next != waiting_.end() && taken.size() < count;) {
    const auto own = next++;
    if (taken.empty() ||
        (own->request().search == first.search &&
         internal::draws_alike(own->request().sampling, first.sampling)))
      taken.splice(taken.end(), waiting_, own);
  }
  return true;
}

/// A fault that is not a request's own lets them go one by one.
void RequestQueue::Workers::translate(Requests& taken) noexcept {
  try {
    std::vector<Waiting*> requests;
    for (Waiting& waiting : taken)
      requests.push_back(&waiting);
    translate_together(requests);
  } catch (const std::exception&) {}
  for (Waiting& waiting : taken) {
    if (waiting.is_told())
      continue;
    try {
      translate_together({&waiting});
    } catch (const std::bad_alloc&) {
      waiting.tell(Status::kOutOfMemory, internal::kOutOfMemory);
    } catch (const std::exception& error) {
      waiting.tell(Status::kFailed, error.what());
    }
  }
}

void RequestQueue::Workers::translate_together(const std::vector<Waiting*>& requests) const {
  std::vector<internal::TranslationInput> all;
  for (const Waiting* waiting : requests)
    all.push_back(waiting->request());
  translator_.translate(
      all,
      {.stop = [&] { return stops(requests); },
       .done =
           [&](size_t i, const internal::TranslationOutcome& result) {
             requests[i]->tell(to_result(result));
           }});
}

/// Tells those that were cancelled; whether all are told, or shall be.
bool RequestQueue::Workers::stops(const std::vector<Waiting*>& requests) const {
  bool all = true;
  for (Waiting* waiting : requests) {
    if (stopping_ || waiting->is_cancelled())
      waiting->cancel();
    all = all && waiting->is_told();
  }
  return all;
}

RequestQueue::RequestQueue(const internal::Translator& translator, int64_t threads)
    : translator_(translator),
      threads_(static_cast<size_t>(threads)),
      workers_(new Workers(translator, threads_)) {}

RequestQueue::~RequestQueue() {
  Workers* const workers = workers_;
  if (workers->is_of_this_process())
    delete workers;
}

RequestQueue::Workers& RequestQueue::workers() {
  Workers* workers = workers_;
  while (!workers->is_of_this_process()) {
    auto own = std::make_unique<Workers>(translator_, threads_);
    if (workers_.compare_exchange_strong(workers, own.get()))
      return *own.release();
  }
  return *workers;
}

std::future<TranslationResult> RequestQueue::add(
    internal::TranslationInput request, const CancelToken& cancel) {
  return workers().add(std::move(request), cancel);
}

}  // namespace seqconv
