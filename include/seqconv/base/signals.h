#pragma once

namespace seqconv {

/// From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 only set a flag, so that the
/// program can save and leave. Further ones change nothing, for one event often
/// sends two; but a second SIGINT or a second SIGTERM, a second or more after
/// the first of its kind, ends the program at once. One that is ignored, as
/// nohup has it with SIGHUP, stays ignored.
void catch_stop_signals();

/// The signal that first asked the program to stop, or 0.
int stop_signal();

/// For tests: pretends that `signal` came (0 forgets it).
void set_stop_signal(int signal);

}  // namespace seqconv
