#pragma once

#include <atomic>
#include <memory>

namespace seqconv::internal {

/// A value that is made when it is first asked for, and kept to the end of the
/// program. Takes no lock, unlike a static variable of a function: a child
/// process of fork() might find that held by a thread that it does not have.
/// Threads that ask at the same time each make one, of which one is kept.
/// Must be a static variable itself.
template <class T>
class MadeOnce {
 public:
  template <class Make>
  const T& get(const Make& make) {
    const T* known = made_.load(std::memory_order_acquire);
    if (known)
      return *known;
    auto own = std::make_unique<const T>(make());
    return made_.compare_exchange_strong(known, own.get()) ? *own.release() : *known;
  }

 private:
  std::atomic<const T*> made_{nullptr};
};

}  // namespace seqconv::internal
