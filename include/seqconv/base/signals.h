#pragma once

namespace seqconv {

/// From now on the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 only sets a flag,
/// so that the program can save and leave; the second one ends it at once. One
/// that is ignored, as nohup has it with SIGHUP, stays ignored.
void catch_stop_signals();

/// The signal that asked the program to stop, or 0.
int stop_signal();

/// For tests: pretends that `signal` came (0 forgets it).
void set_stop_signal(int signal);

}  // namespace seqconv
