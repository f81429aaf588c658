#pragma once

#include <atomic>
#include <future>
#include <memory>

#include "pipeline/translator.h"
#include "seqconv/runtime.h"

namespace seqconv {

/// Requests that threads of its own translate, those that wait together. A
/// child process, which has none of its parent's threads, gets workers of its
/// own: what the parent's left behind, locks among it, is not touched there.
class RequestQueue {
 public:
  /// translator: one of a single worker, which outlives this.
  RequestQueue(const internal::Translator& translator, int64_t threads);
  /// Cancels all that waits or is under way.
  ~RequestQueue();

  /// The future gives a result and never throws. std::bad_alloc;
  /// internal::Error where no thread can be started.
  std::future<TranslationResult> add(internal::TranslationInput request, const CancelToken& cancel);

 private:
  class Workers;
  Workers& workers();

  const internal::Translator& translator_;
  size_t threads_;
  std::atomic<Workers*> workers_;
};

}  // namespace seqconv
