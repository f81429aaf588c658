#include "train/processes/watchdog.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"

namespace seqconv::internal {
namespace {

constexpr int kTag = 1;
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kBusyPause = std::chrono::milliseconds(1);

}  // namespace

Watchdog::Watchdog(MPI_Comm communicator, std::vector<std::string> names)
    : names_(std::move(names)) {
  MPI_Comm_dup(communicator, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (sent_ != MPI_REQUEST_NULL)
    MPI_Request_free(&sent_);
}

void Watchdog::set_busy(bool busy) {
  {
    const std::lock_guard lock(mutex_);
    busy_ = busy;
  }
  if (busy)
    changed_.notify_one();
}

void Watchdog::run() {
  auto last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!over_) {
    lock.unlock();
    send_beat();
    receive_beats();
    // A process that was itself stopped for a while has heard nothing.
    const auto now = Clock::now();
    silence_ += std::min(now - last, kBeat);
    last = now;
    if (silence_ > kMostSilence)
      end_run();
    lock.lock();
    if (!over_)
      changed_.wait_for(lock, busy_ ? kBusyPause : kPause);
  }
}

void Watchdog::send_beat() {
  int sent = 1;
  if (sent_ != MPI_REQUEST_NULL)
    MPI_Test(&sent_, &sent, MPI_STATUS_IGNORE);
  const auto now = Clock::now();
  if (!sent || now - beaten_ < kBeat)
    return;
  beaten_ = now;
  const int next = (rank_ + 1) % size_;
  MPI_Isend(&beat_, 1, MPI_CHAR, next, kTag, communicator_, &sent_);
}

void Watchdog::receive_beats() {
  const int before = (rank_ + size_ - 1) % size_;
  for (;;) {
    int there = 0;
    MPI_Iprobe(before, kTag, communicator_, &there, MPI_STATUS_IGNORE);
    if (!there)
      return;
    char beat = 0;
    MPI_Recv(&beat, 1, MPI_CHAR, before, kTag, communicator_, MPI_STATUS_IGNORE);
    silence_ = {};
  }
}

void Watchdog::end_run() {
  const int before = (rank_ + size_ - 1) % size_;
  log_line(
      LogLevel::kError,
      concat(
          "rank ",
          before,
          " (",
          names_[static_cast<size_t>(before)],
          ") has given no sign of life for ",
          std::chrono::duration_cast<std::chrono::seconds>(kMostSilence).count(),
          " s: it hangs or cannot be reached. The run ends; go on from its last saved state with "
          "--resume"));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace seqconv::internal
