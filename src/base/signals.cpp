#include "seqconv/base/signals.h"

#include <csignal>

namespace seqconv {
namespace {

volatile std::sig_atomic_t g_signal = 0;

void on_signal(int signal) {
  g_signal = signal;
  // The next one takes the default action.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_stop_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

int stop_signal() {
  return g_signal;
}

void set_stop_signal(int signal) {
  g_signal = signal;
}

}  // namespace seqconv
