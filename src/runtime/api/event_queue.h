#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include "runtime/api/results.h"

namespace seqconv::internal {

/// A result for whoever takes it.
struct Event {
  void* user = nullptr;
  OwnResult result;
};
using Events = std::list<Event>;

/// Events in their order, and a descriptor that is readable while there are some.
class EventQueue {
 public:
  /// CallError where there is no descriptor to be had.
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  int descriptor() const { return descriptor_; }
  /// CallError in a process that did not make the queue.
  void require_own_process() const;
  /// Takes over the only event of `one`; needs no memory. A closed queue drops it.
  void add(Events& one) noexcept;
  /// The oldest event, waiting for it up to `timeout_ms`, -1: for ever; none: nothing came.
  /// CallError in a process that did not make the queue.
  Events take(int64_t timeout_ms);
  /// Drops what is there and what is to come.
  void close() noexcept;

 private:
  const uint64_t forks_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the lock:
  Events events_;
  bool closed_ = false;
};

}  // namespace seqconv::internal

/// Requests under way keep the queue.
struct seqconv_queue {
  std::shared_ptr<seqconv::internal::EventQueue> events;
};
