#include "request_queue.h"

#include <unistd.h>

#include <algorithm>

#include "conversions.h"

namespace seqconv::api {
namespace {

/// Requests that one thread takes at a time, at most.
constexpr size_t kMostTogether = 64;

TranslationResult failure(std::string error, bool cancelled) {
  return {
      .translations = {},
      .error = std::move(error),
      .cancelled = cancelled,
      .notes = {}};
}

}  // namespace

RequestQueue::~RequestQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    if (process_ == ::getpid())
      thread.join();
    else
      thread.detach();  // of the parent process
  for (Waiting& waiting : waiting_)
    waiting.promise.set_value(failure("cancelled", true));
}

std::future<TranslationResult> RequestQueue::add(
    seqconv::TranslationRequest request,
    CancelToken cancel) {
  std::future<TranslationResult> result;
  {
    const std::lock_guard lock(mutex_);
    begin_threads();
    Waiting& own = waiting_.emplace_back();
    own.request = std::move(request);
    own.cancel = std::move(cancel);
    result = own.promise.get_future();
  }
  changed_.notify_one();
  return result;
}

void RequestQueue::begin_threads() {
  if (process_ == ::getpid())
    return;
  for (std::thread& thread : threads_)
    thread.detach();  // of the parent process
  threads_.clear();
  waiting_.clear();
  process_ = ::getpid();
  for (int64_t i = 0; i < threads_wanted_; ++i)
    threads_.emplace_back([this] { work(); });
}

void RequestQueue::work() {
  for (Taken taken; take(taken);)
    translate(taken);
}

bool RequestQueue::take(Taken& taken) {
  taken.clear();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
  if (stopping_)
    return false;
  // Other threads shall have their share.
  const size_t share =
      waiting_.size() / static_cast<size_t>(threads_wanted_) + 1;
  const size_t count = std::min({waiting_.size(), share, kMostTogether});
  for (size_t i = 0; i < count; ++i) {
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return true;
}

bool RequestQueue::stops(const Taken& taken) const {
  return stopping_ ||
      std::all_of(taken.begin(), taken.end(), [](const auto& w) {
           return w.cancel.is_cancelled();
         });
}

void RequestQueue::translate(Taken& taken) const {
  std::vector<seqconv::TranslationRequest> requests;
  for (Waiting& waiting : taken)
    requests.push_back(std::move(waiting.request));
  std::vector<bool> told(taken.size(), false);
  const auto tell = [&](size_t i, TranslationResult result) {
    if (told[i])
      return;
    told[i] = true;
    if (result.ok() && taken[i].cancel.is_cancelled())
      result = failure("cancelled", true);
    taken[i].promise.set_value(std::move(result));
  };
  try {
    translator_.translate(
        requests,
        {.stop = [&] { return stops(taken); },
         .done =
             [&](size_t i, const seqconv::TranslationResult& result) {
               tell(i, to_result(result));
             }});
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < taken.size(); ++i)
      tell(i, failure("out of memory", false));
  } catch (const std::exception& error) {
    for (size_t i = 0; i < taken.size(); ++i)
      tell(i, failure(error.what(), false));
  }
}

}  // namespace seqconv::api
