#pragma once

#include <atomic>
#include <list>

#include "runtime/api/answer.h"

namespace seqconv::internal {

/// Requests that threads of its own answer, those that wait together. A child process, which has
/// none of its parent's threads, gets workers of its own: what the parent's left behind, locks
/// among it, is not touched there.
class RequestQueue {
 public:
  /// answerer: its translator has a single worker. options: queue_limit and max_wait_ms.
  RequestQueue(const Answerer& answerer, int64_t threads, const RuntimeOptions& options);
  /// Cancels all that waits or is under way.
  ~RequestQueue();
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  using Requests = std::list<Request>;
  /// Takes over the only request of `one`. std::bad_alloc; CallError where no thread can be
  /// started or too many requests wait: nothing was done then.
  void add(Requests& one);

 private:
  class Workers;
  Workers& workers();

  const Answerer answerer_;
  const size_t threads_;
  const size_t most_;
  const std::chrono::milliseconds max_wait_;
  std::atomic<Workers*> workers_;
};

}  // namespace seqconv::internal
