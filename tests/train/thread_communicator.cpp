#include "thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace seqconv::testing {
namespace {

/// What waiting threads are let go with when another has failed.
struct LetGo : std::runtime_error {
  LetGo() : std::runtime_error("another thread has failed") {}
};

/// Where all threads lay something down, one combines it, and all go on.
class Meeting {
 public:
  explicit Meeting(int64_t size) : parts_(static_cast<size_t>(size)) {}

  /// `combine` is called once, in the last thread to come.
  void meet(
      int64_t rank,
      void* part,
      const std::function<void(const std::vector<void*>&)>& combine) {
    std::unique_lock lock(mutex_);
    parts_[static_cast<size_t>(rank)] = part;
    const int64_t turn = turn_;
    if (++present_ == static_cast<int64_t>(parts_.size())) {
      combine(parts_);
      present_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return turn_ != turn || failed_; });
    if (turn_ == turn)
      throw LetGo();
  }

  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<void*> parts_;
  int64_t present_ = 0;
  int64_t turn_ = 0;
  bool failed_ = false;
};

/// Adds up in the order of the ranks, for every rank the same.
template <class T>
void sum_parts(const std::vector<void*>& parts) {
  std::vector<std::span<T>> spans;
  for (void* part : parts)
    spans.push_back(*static_cast<std::span<T>*>(part));
  for (const auto& span : spans)
    if (span.size() != spans[0].size())
      throw std::logic_error("the processes sum different things");
  for (size_t i = 0; i < spans[0].size(); ++i) {
    T total = 0;
    for (const auto& span : spans)
      total += span[i];
    for (const auto& span : spans)
      span[i] = total;
  }
}

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
    if (!std::ranges::equal(all[rank].ends, all[0].ends) ||
        end % Communicator::kShareUnit != 0 ||
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
  void start_sum(std::span<float> bucket) override {
    started_.push_back(bucket);
  }
  void finish_sums() override {
    for (std::span<float>& bucket : started_)
      meeting_.meet(rank_, &bucket, sum_parts<float>);
    started_.clear();
  }
  void sum(std::span<double> values) override {
    meeting_.meet(rank_, &values, sum_parts<double>);
  }
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
    const auto own = values.subspan(
        static_cast<size_t>(begin),
        static_cast<size_t>(ends[rank] - begin));
    Share share{own, values, ends};
    meeting_.meet(rank_, &share, copy_shares);
  }
  void collect(
      std::span<const float> own,
      std::span<float> values,
      std::span<const int64_t> ends) override {
    Share share{own, values, ends};
    meeting_.meet(rank_, &share, copy_shares);
  }
  void abort(int /*code*/) override { meeting_.fail(); }

 private:
  Meeting& meeting_;
  int64_t rank_;
  int64_t size_;
  std::vector<std::span<float>> started_;
};

}  // namespace

void run_in_threads(
    int64_t size,
    const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  Meeting meeting(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(std::make_shared<ThreadCommunicator>(meeting, rank, size));
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

}  // namespace seqconv::testing
