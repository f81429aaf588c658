#pragma once

#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace seqconv::internal {

/// A thread that finds out when another process hangs or cannot be reached,
/// which MPI itself would wait for for ever. Processes stand in a ring: each
/// sends signs of life to the next one, which ends the run when they fail to
/// come. (mpirun itself ends it when a process dies.)
///
/// As MPI moves messages only while it is called, the thread also keeps sums
/// going while the others compute.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kBeat = std::chrono::seconds(1);
  static constexpr Clock::duration kMostSilence = std::chrono::seconds(20);

  /// `names` says who each rank is, for messages.
  Watchdog(MPI_Comm communicator, std::vector<std::string> names);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// All processes must have nothing more to do: their silence is noticed.
  ~Watchdog();

  /// Whether messages are under way that the thread should keep going.
  void set_busy(bool busy);

 private:
  void run();
  void send_beat();
  void receive_beats();
  [[noreturn]] void end_run();

  MPI_Comm communicator_;
  std::vector<std::string> names_;
  int rank_ = 0;
  int size_ = 1;
  char beat_ = 0;
  MPI_Request sent_ = MPI_REQUEST_NULL;
  Clock::time_point beaten_;
  Clock::duration silence_{};  // of the process before, while this one ran

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace seqconv::internal
