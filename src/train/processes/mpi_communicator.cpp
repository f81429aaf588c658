#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "train/processes/communicator_module.h"
#include "train/processes/watchdog.h"

namespace seqconv::internal {
namespace {

/// MPI counts in int.
constexpr size_t kMostElements = size_t{1} << 30;

/// Calls `work(part)` for parts that MPI can count.
template <class T, class Work>
void for_parts(std::span<T> values, const Work& work) {
  for (size_t begin = 0; begin < values.size(); begin += kMostElements)
    work(values.subspan(begin, std::min(kMostElements, values.size() - begin)));
}

/// The shares of all processes as MPI counts them, in units of kShareUnit.
struct UnitShares {
  explicit UnitShares(std::span<const int64_t> ends) {
    MPI_Type_contiguous(Communicator::kShareUnit, MPI_FLOAT, &unit);
    MPI_Type_commit(&unit);
    int begin = 0;
    for (const int64_t end : ends) {
      const auto next = static_cast<int>(end / Communicator::kShareUnit);
      begins.push_back(begin);
      counts.push_back(next - begin);
      begin = next;
    }
  }
  UnitShares(const UnitShares&) = delete;
  UnitShares& operator=(const UnitShares&) = delete;
  ~UnitShares() { MPI_Type_free(&unit); }

  MPI_Datatype unit = MPI_DATATYPE_NULL;
  std::vector<int> begins;
  std::vector<int> counts;
};

/// "process 123 on node7" of each rank.
std::vector<std::string> process_names(int size) {
  std::array<char, 128> own{};
  std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
  int length = 0;
  MPI_Get_processor_name(host.data(), &length);
  std::snprintf(
      own.data(), own.size(), "process %d on %.80s", static_cast<int>(::getpid()), host.data());
  std::vector<std::array<char, 128>> all(static_cast<size_t>(size));
  constexpr int kBytes = static_cast<int>(own.size());
  MPI_Allgather(own.data(), kBytes, MPI_CHAR, all.data(), kBytes, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> names;
  for (const auto& name : all)
    names.emplace_back(name.data());
  return names;
}

/// Faults of MPI itself end the job with its own message (the default of
/// MPI_COMM_WORLD): no process could go on.
class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    SEQCONV_CHECK(
        level == MPI_THREAD_MULTIPLE,
        "training needs an MPI that several threads may call (MPI_THREAD_MULTIPLE), but this one "
        "does not allow it");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_free(&local);
    if (size_ > 1)
      watchdog_.emplace(MPI_COMM_WORLD, process_names(size_));
  }

  ~MpiCommunicator() override {
    barrier();  // with signs of life: the first may still be writing
    watchdog_.reset();
    MPI_Finalize();
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  int64_t local_size() const override { return local_size_; }
  int64_t local_rank() const override { return local_rank_; }

  void start_sum(std::span<float> bucket) override { start(bucket, MPI_FLOAT); }

  void start_sum(std::span<double> numbers) override { start(numbers, MPI_DOUBLE); }

  void finish_sums() override {
    if (watchdog_)
      watchdog_->set_busy(false);
    wait();
  }

  void sum(std::span<double> values) override {
    begin_sum(values, MPI_DOUBLE);
    wait();
  }

  int64_t largest(int64_t value) override {
    MPI_Iallreduce(
        MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD, &started_.emplace_back());
    wait();
    return value;
  }

  void broadcast(std::span<std::byte> bytes, int64_t root) override {
    for_parts(bytes, [&](std::span<std::byte> part) {
      MPI_Ibcast(
          part.data(),
          static_cast<int>(part.size()),
          MPI_BYTE,
          static_cast<int>(root),
          MPI_COMM_WORLD,
          &started_.emplace_back());
    });
    wait();
  }

  void share(std::span<float> values, std::span<const int64_t> ends) override {
    const UnitShares shares(ends);
    MPI_Iallgatherv(
        MPI_IN_PLACE,
        0,
        MPI_DATATYPE_NULL,
        values.data(),
        shares.counts.data(),
        shares.begins.data(),
        shares.unit,
        MPI_COMM_WORLD,
        &started_.emplace_back());
    wait();
  }

  void collect(
      std::span<const float> own, std::span<float> values, std::span<const int64_t> ends) override {
    const UnitShares shares(ends);
    MPI_Igatherv(
        own.data(),
        shares.counts[static_cast<size_t>(rank_)],
        shares.unit,
        values.data(),
        shares.counts.data(),
        shares.begins.data(),
        shares.unit,
        /*root=*/0,
        MPI_COMM_WORLD,
        &started_.emplace_back());
    wait();
  }

  void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  template <class T>
  void start(std::span<T> values, MPI_Datatype type) {
    begin_sum(values, type);
    if (watchdog_)
      watchdog_->set_busy(true);
  }

  template <class T>
  void begin_sum(std::span<T> values, MPI_Datatype type) {
    for_parts(values, [&](std::span<T> part) {
      MPI_Iallreduce(
          MPI_IN_PLACE,
          part.data(),
          static_cast<int>(part.size()),
          type,
          MPI_SUM,
          MPI_COMM_WORLD,
          &started_.emplace_back());
    });
  }

  /// Waits for all that was started. MPI's own waiting would take the cores
  /// from processes that compute, where there are more of them than cores.
  void wait() {
    constexpr int kYields = 100;
    for (int turn = 0;; ++turn) {
      int done = 0;
      MPI_Testall(static_cast<int>(started_.size()), started_.data(), &done, MPI_STATUSES_IGNORE);
      if (done)
        break;
      if (turn < kYields)
        ::sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    started_.clear();
  }

  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
  int local_rank_ = 0;
  std::vector<MPI_Request> started_;
  std::optional<Watchdog> watchdog_;
};

const CommunicatorModule kModule{
    .open = [](const CommunicatorRequest& /*request*/) -> std::shared_ptr<Communicator> {
      return std::make_shared<MpiCommunicator>();
    },
};

}  // namespace
}  // namespace seqconv::internal

extern "C" SEQCONV_VISIBLE const seqconv::internal::CommunicatorModule* seqconv_communicator() {
  return &seqconv::internal::kModule;
}
