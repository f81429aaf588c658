#include "base/signals.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <limits>

#include "base/files_under_way.h"

namespace seqconv::internal {
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
std::atomic<int64_t> g_signals{0};
std::atomic<int> g_saving{0};
std::atomic<int64_t> g_patience{kNever};         // ns
std::atomic<int64_t> g_first_interrupt{kNever};  // ns, when SIGINT came first
std::atomic<int64_t> g_first_terminate{kNever};  // the same of SIGTERM

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool is_second_wish(int signal) {
  std::atomic<int64_t>& first = signal == SIGINT ? g_first_interrupt : g_first_terminate;
  const int64_t time = now();
  int64_t before = kNever;
  return !first.compare_exchange_strong(before, time) && time - before >= kSecondWish;
}

bool ends_the_program(int signal) {
  if (signal != SIGINT && signal != SIGTERM)
    return false;
  const bool second = is_second_wish(signal);
  if (g_saving == 0)
    return second;
  return (second && signal == SIGINT) || time_without_growth().count() >= g_patience;
}

void on_signal(int signal) {
  int none = 0;
  g_signal.compare_exchange_strong(none, signal);
  ++g_signals;
  if (!ends_the_program(signal))
    return;
  remove_files_under_way();
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // blocked until this handler is left
}

}  // namespace

void handle_signal(int signal, void (*handler)(int)) {
  struct sigaction present {};
  if (::sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_IGN)
    std::signal(signal, handler);
}

void catch_stop_signals() {
  for (const int signal : kStopSignals)
    handle_signal(signal, on_signal);
}

int stop_signal() {
  return g_signal;
}

int64_t stop_signals() {
  return g_signals;
}

Saving::Saving(std::chrono::nanoseconds patience) {
  g_patience = patience.count();
  ++g_saving;
}

Saving::~Saving() {
  --g_saving;
}

void set_stop_signal(int signal) {
  g_signal = signal;
  g_signals += signal != 0;
  g_first_interrupt = kNever;
  g_first_terminate = kNever;
}

}  // namespace seqconv::internal
