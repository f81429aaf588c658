#include "seqconv/base/signals.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <limits>

namespace seqconv {
namespace {

/// A user's and an administrator's; of a terminal that was closed; of batch
/// systems before the time is up.
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// The kernel and the shell, or a batch system and its helpers, may each send
/// their own for one event: what comes again sooner is no second wish.
constexpr int64_t kSecondWish = 1'000'000'000;  // ns
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Signals may reach several threads at once; the handler takes no lock.
static_assert(std::atomic<int64_t>::is_always_lock_free);
std::atomic<int> g_signal{0};
std::atomic<int64_t> g_first_interrupt{kNever};  // ns, when SIGINT came first
std::atomic<int64_t> g_first_terminate{kNever};  // the same of SIGTERM

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void on_signal(int signal) {
  int none = 0;
  g_signal.compare_exchange_strong(none, signal);
  if (signal != SIGINT && signal != SIGTERM)
    return;
  std::atomic<int64_t>& first =
      signal == SIGINT ? g_first_interrupt : g_first_terminate;
  const int64_t time = now();
  int64_t before = kNever;
  if (first.compare_exchange_strong(before, time) ||
      time - before < kSecondWish)
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // blocked until this handler is left
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : kStopSignals)
    if (std::signal(signal, on_signal) == SIG_IGN)
      std::signal(signal, SIG_IGN);
}

int stop_signal() {
  return g_signal;
}

void set_stop_signal(int signal) {
  g_signal = signal;
  g_first_interrupt = kNever;
  g_first_terminate = kNever;
}

}  // namespace seqconv
