#pragma once

#include <chrono>
#include <cstdint>

namespace seqconv::internal {

/// Calls `handler` when `signal` comes, unless it is ignored: what nohup, or a
/// shell without job control for its jobs in the background, ignores for a
/// program stays ignored.
void handle_signal(int signal, void (*handler)(int));

/// From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 only set a flag, so that the
/// program can save and leave. Further ones change nothing, for one event often
/// sends two; but a second SIGINT or a second SIGTERM, a second or more after
/// the first of its kind, ends the program at once, and what it was writing
/// (base/files_under_way.h) goes. One that is ignored stays ignored.
void catch_stop_signals();

/// The signal that first asked the program to stop, or 0.
int stop_signal();

/// The number of them that have come.
int64_t stop_signals();

/// While one lives the program saves what it has, or waits for another process
/// that does: SIGTERM, however often it comes, is noted only, as who has
/// started several processes sends it to those that are left. Two SIGINTs still
/// end the program, and so does a SIGINT or SIGTERM when no file under way has
/// grown for `patience`: the disk hangs.
class Saving {
 public:
  explicit Saving(std::chrono::nanoseconds patience = std::chrono::seconds(60));
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;
  ~Saving();
};

/// For tests: pretends that `signal` came (0 forgets it).
void set_stop_signal(int signal);

}  // namespace seqconv::internal
