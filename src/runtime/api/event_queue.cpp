#include "runtime/api/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/api/arguments.h"
#include "runtime/api/forks.h"

namespace seqconv::internal {

EventQueue::EventQueue()
    : forks_(count_forks()), descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0)
    fail_call(
        SEQCONV_ERROR, "a queue needs a descriptor, but there is none: ", std::strerror(errno));
}

EventQueue::~EventQueue() {
  ::close(descriptor_);
}

void EventQueue::add(Events& one) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      return;
    if (events_.empty()) {
      const uint64_t some = 1;
      static_cast<void>(::write(descriptor_, &some, sizeof(some)));
    }
    events_.splice(events_.end(), one);
  }
  changed_.notify_one();
}

void EventQueue::require_own_process() const {
  if (forks_ != count_forks())
    fail_call(SEQCONV_WRONG_PROCESS, "a queue must be of this process, but is its parent's");
}

Events EventQueue::take(int64_t timeout_ms) {
  if (timeout_ms < -1)
    fail_option("timeout_ms must be at least -1, but got ", timeout_ms);
  require_own_process();
  std::unique_lock lock(mutex_);
  const auto some = [&] { return !events_.empty(); };
  // A time that no clock reaches is for ever.
  constexpr int64_t kLongest = int64_t{1} << 40;
  if (timeout_ms < 0 || timeout_ms > kLongest)
    changed_.wait(lock, some);
  else
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), some);
  Events taken;
  if (events_.empty())
    return taken;
  taken.splice(taken.end(), events_, events_.begin());
  if (events_.empty()) {
    uint64_t all = 0;
    static_cast<void>(::read(descriptor_, &all, sizeof(all)));
  }
  return taken;
}

void EventQueue::close() noexcept {
  Events dropped;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(events_);
}

}  // namespace seqconv::internal

namespace api = seqconv::internal;

extern "C" {

seqconv_status seqconv_queue_new(seqconv_queue** queue) {
  return api::guarded(SEQCONV_ERROR, [&] {
    seqconv_queue*& place = api::required(queue, "queue");
    auto own = std::make_unique<seqconv_queue>();
    own->events = std::make_shared<api::EventQueue>();
    place = own.release();
  });
}

void seqconv_queue_free(seqconv_queue* queue) {
  if (queue == nullptr)
    return;
  queue->events->close();
  delete queue;
}

int32_t seqconv_queue_descriptor(const seqconv_queue* queue) {
  return queue == nullptr ? -1 : queue->events->descriptor();
}

seqconv_status seqconv_queue_take(seqconv_queue* queue, int64_t timeout_ms, seqconv_event* event) {
  bool empty = false;
  const seqconv_status status = api::guarded(SEQCONV_ERROR, [&] {
    seqconv_event own = SEQCONV_EVENT_INIT;
    own = api::read_struct(&api::required(event, "event"), own, "seqconv_event");
    api::Events taken = api::required(queue, "queue").events->take(timeout_ms);
    empty = taken.empty();
    own.user = empty ? nullptr : taken.front().user;
    own.result = empty ? nullptr : taken.front().result.release();
    const size_t size = event->size;
    std::memcpy(event, &own, size);
    event->size = size;
  });
  // An empty queue is no failure whose text anyone reads.
  return status == SEQCONV_OK && empty ? SEQCONV_EMPTY : status;
}

}  // extern "C"
