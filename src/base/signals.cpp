#include "seqconv/base/signals.h"

#include <csignal>

namespace seqconv {
namespace {

/// A user's and an administrator's; of a terminal that was closed; of batch
/// systems before the time is up.
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

volatile std::sig_atomic_t g_signal = 0;

/// For all of them but those that are ignored.
void handle_stop_signals(void (*handler)(int)) {
  for (const int signal : kStopSignals)
    if (std::signal(signal, handler) == SIG_IGN)
      std::signal(signal, SIG_IGN);
}

void on_signal(int signal) {
  g_signal = signal;
  handle_stop_signals(SIG_DFL);  // the next one takes the default action
}

}  // namespace

void catch_stop_signals() {
  handle_stop_signals(on_signal);
}

int stop_signal() {
  return g_signal;
}

void set_stop_signal(int signal) {
  g_signal = signal;
}

}  // namespace seqconv
