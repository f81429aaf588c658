#include "thread_communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "meeting.h"
#include "thread_backend.h"
#include "train/processes/torch_communicator.h"

namespace seqconv::internal::testing {
namespace {

/// What a process brings to share() or collect().
struct Share {
  std::span<const float> own;
  std::span<float> values;  // empty where they are not wanted
  std::span<const int64_t> ends;
};

/// Every share is copied to where all are wanted.
void copy_shares(const std::vector<void*>& parts) {
  std::vector<Share> all;
  for (void* part : parts)
    all.push_back(*static_cast<Share*>(part));
  int64_t begin = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int64_t end = all[0].ends[rank];
    const auto own = all[rank].own;
    if (!std::ranges::equal(all[rank].ends, all[0].ends) || end % Communicator::kShareUnit != 0 ||
        static_cast<int64_t>(own.size()) != end - begin)
      throw std::logic_error("the processes share different things");
    for (const Share& other : all)
      if (!other.values.empty() && other.values.data() + begin != own.data())
        std::ranges::copy(own, other.values.begin() + begin);
    begin = end;
  }
}

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Meeting& meeting, int64_t rank, int64_t size)
      : meeting_(meeting), rank_(rank), size_(size) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  int64_t local_size() const override { return size_; }
  int64_t local_rank() const override { return rank_; }
  void start_sum(std::span<float> bucket) override { started_.push_back(bucket); }
  void start_sum(std::span<double> numbers) override { started_numbers_.push_back(numbers); }
  void finish_sums() override {
    for (std::span<float>& bucket : started_)
      meeting_.meet(rank_, &bucket, sum_parts<float>);
    for (std::span<double>& numbers : started_numbers_)
      meeting_.meet(rank_, &numbers, sum_parts<double>);
    started_.clear();
    started_numbers_.clear();
  }
  void sum(std::span<double> values) override { meeting_.meet(rank_, &values, sum_parts<double>); }
  int64_t largest(int64_t value) override {
    meeting_.meet(rank_, &value, [](const std::vector<void*>& parts) {
      int64_t most = *static_cast<int64_t*>(parts[0]);
      for (void* part : parts)
        most = std::max(most, *static_cast<int64_t*>(part));
      for (void* part : parts)
        *static_cast<int64_t*>(part) = most;
    });
    return value;
  }
  void broadcast(std::span<std::byte> bytes, int64_t root) override {
    meeting_.meet(rank_, &bytes, [root](const std::vector<void*>& parts) {
      const auto span = [&](size_t rank) {
        return *static_cast<std::span<std::byte>*>(parts[rank]);
      };
      const auto given = span(static_cast<size_t>(root));
      for (size_t rank = 0; rank < parts.size(); ++rank) {
        if (span(rank).size() != given.size())
          throw std::logic_error("the processes broadcast different things");
        if (span(rank).data() != given.data())
          std::memcpy(span(rank).data(), given.data(), given.size());
      }
    });
  }
  void share(std::span<float> values, std::span<const int64_t> ends) override {
    const auto rank = static_cast<size_t>(rank_);
    const int64_t begin = rank == 0 ? 0 : ends[rank - 1];
    const auto own =
        values.subspan(static_cast<size_t>(begin), static_cast<size_t>(ends[rank] - begin));
    Share share{own, values, ends};
    meeting_.meet(rank_, &share, copy_shares);
  }
  void collect(
      std::span<const float> own, std::span<float> values, std::span<const int64_t> ends) override {
    Share share{own, values, ends};
    meeting_.meet(rank_, &share, copy_shares);
  }
  void abort(int /*code*/) override { meeting_.fail(); }

 private:
  Meeting& meeting_;
  int64_t rank_;
  int64_t size_;
  std::vector<std::span<float>> started_;
  std::vector<std::span<double>> started_numbers_;
};

std::shared_ptr<Communicator> make(Through through, Meeting& meeting, int64_t rank, int64_t size) {
  auto threads = std::make_shared<ThreadCommunicator>(meeting, rank, size);
  if (through == Through::kMemory)
    return threads;
  constexpr int64_t kPiece = 1000;  // elements: most buffers have several
  return std::make_shared<TorchCommunicator>(
      TorchCommunicatorParts{
          .backend = make_thread_backend(meeting, rank, size),
          .device = at::kCPU,
          .host = through == Through::kTorchAndHost ? threads : nullptr,
          .local_size = size,
          .local_rank = rank},
      kPiece);
}

}  // namespace

void run_in_threads(
    int64_t size,
    const std::function<void(const std::shared_ptr<Communicator>&)>& work,
    Through through) {
  Meeting meeting(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(make(through, meeting, rank, size));
      } catch (const LetGo&) {
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
        meeting.fail();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

}  // namespace seqconv::internal::testing
