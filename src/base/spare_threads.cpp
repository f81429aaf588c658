#include "base/spare_threads.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace seqconv::internal {
namespace {

/// Looks for a loop before a thread sleeps: a tenth of a millisecond or so.
constexpr int kLooks = 4000;
/// After so many the system may give the core to another thread.
constexpr int kLooksBetweenYields = 500;

thread_local SpareThreads* lent_to = nullptr;

/// What a thread does between two looks, the `looks`-th and the next.
void pause(int looks) {
  if (looks % kLooksBetweenYields == 0)
    return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

/// One loop, of which threads take part after part.
struct SpareThreads::Loop {
  const int64_t count;
  const int64_t part;
  const Body& body;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure{};

  void run() {
    while (!failed) {
      const int64_t begin = next.fetch_add(part);
      if (begin >= count)
        return;
      try {
        body(begin, std::min(begin + part, count));
      } catch (...) {
        if (!failed.exchange(true))
          failure = std::current_exception();
      }
    }
  }
};

SpareThreads::Lending::Lending(SpareThreads& threads) : threads_(threads), before_(lent_to) {
  ++threads_.lending_;
  lent_to = &threads;
}

SpareThreads::Lending::~Lending() {
  lent_to = before_;
  --threads_.lending_;
}

void SpareThreads::loop(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0)
    return;
  SpareThreads* const spare = lent_to;
  if (spare != nullptr && count > grain && spare->wanted_ &&
      !spare->was_wanted_.load(std::memory_order_relaxed) && !spare->was_wanted_.exchange(true))
    spare->wanted_();
  const int64_t helping = spare == nullptr ? 0 : std::min(spare->helping_.load(), kMostHelping);
  // A loop inside a loop, or beside another thread's, is run alone.
  if (helping == 0 || count <= grain || spare->taken_.exchange(true))
    return body(0, count);
  // Two parts a thread: who comes late has one less to wait for.
  const int64_t parts = 2 * (helping + 1);
  Loop shared{.count = count, .part = std::max(grain, (count + parts - 1) / parts), .body = body};
  spare->run(shared);
  spare->taken_ = false;
  if (shared.failure)
    std::rethrow_exception(shared.failure);
}

/// Nobody enters once the loop is taken away, and it goes when nobody is
/// inside: either a thread sees that it is gone, or it is seen.
void SpareThreads::run(Loop& loop) {
  loop_ = &loop;
  if (sleeping_ > 0)
    wake();
  loop.run();
  loop_ = nullptr;
  for (int looks = 1; inside_ > 0; ++looks)
    pause(looks);
}

void SpareThreads::take_part() {
  ++inside_;
  if (Loop* const loop = loop_)
    loop->run();
  --inside_;
}

void SpareThreads::help(uint32_t calls) {
  if (++helping_ > kMostHelping)
    rest(calls);
  while (calls_ == calls)
    if (watch(calls))
      take_part();
    else
      sleep(calls);
  --helping_;
}

/// Whether there is a loop now or soon.
bool SpareThreads::watch(uint32_t calls) const {
  for (int looks = 1; looks <= kLooks && calls_ == calls && lending_ > 0; ++looks) {
    if (loop_.load() != nullptr)
      return true;
    pause(looks);
  }
  return false;
}

void SpareThreads::sleep(uint32_t calls) {
  const uint32_t wakes = wakes_;
  ++sleeping_;
  if (calls_ == calls && loop_ == nullptr)
    wakes_.wait(wakes);
  --sleeping_;
}

void SpareThreads::wake() {
  ++wakes_;
  wakes_.notify_all();
}

void SpareThreads::call_back() {
  ++calls_;
  calls_.notify_all();
  wake();
}

}  // namespace seqconv::internal
