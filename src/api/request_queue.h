#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "seqconv/api/runtime.h"
#include "seqconv/pipeline/translator.h"

namespace seqconv::api {

/// Requests that threads of its own translate, those that wait together. The
/// threads begin with the first request. In a child process, which has none of
/// them, new ones begin; what waited in its parent is not known there.
class RequestQueue {
 public:
  /// translator: one of a single worker, which outlives this.
  RequestQueue(const seqconv::Translator& translator, int64_t threads)
      : translator_(translator), threads_wanted_(threads) {}
  /// Cancels all that waits or is under way.
  ~RequestQueue();

  std::future<TranslationResult> add(
      seqconv::TranslationRequest request,
      CancelToken cancel);

 private:
  struct Waiting {
    seqconv::TranslationRequest request;
    CancelToken cancel;
    std::promise<TranslationResult> promise;
  };
  using Taken = std::vector<Waiting>;

  void begin_threads();
  void work();
  bool take(Taken& taken);
  void translate(Taken& taken) const;
  bool stops(const Taken& taken) const;

  const seqconv::Translator& translator_;
  int64_t threads_wanted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::atomic<bool> stopping_ = false;
  pid_t process_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace seqconv::api
