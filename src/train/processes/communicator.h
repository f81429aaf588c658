#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace seqconv::internal {

/// The processes that train one model, as each of them sees the others. All
/// make the same calls in the same order, but for those that only ask and for
/// abort(). A sum is the same to the bit in every process. Buckets and shares
/// lie where the model does, all else on the host. It knows no LibTorch, so
/// that a library without it can be one.
class Communicator {
 public:
  static constexpr int64_t kShareUnit = 16;  ///< elements

  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;  ///< of this process, from 0
  virtual int64_t size() const = 0;
  /// Processes on this machine, this one counted: they share its cores.
  virtual int64_t local_size() const = 0;
  /// The rank of this process among them, from 0.
  virtual int64_t local_rank() const = 0;

  /// Starts to replace `bucket` by its sum over all processes, and returns at
  /// once: the numbers are nobody's until finish_sums() has returned.
  virtual void start_sum(std::span<float> bucket) = 0;
  /// The same of numbers that lie where the buckets do.
  virtual void start_sum(std::span<double> numbers) = 0;
  /// Lets what reads the numbers after this call find every sum that was
  /// started: a device's work is put behind them, the host waits on the host
  /// alone.
  virtual void finish_sums() = 0;
  /// Replaces `values` by their sums over all processes.
  virtual void sum(std::span<double> values) = 0;
  /// The largest of all processes' values.
  virtual int64_t largest(int64_t value) = 0;
  /// Gives all processes the bytes of process `root`.
  virtual void broadcast(std::span<std::byte> bytes, int64_t root) = 0;
  /// Gives all processes the shares of all. The share of process r are the
  /// elements of `values` from ends[r - 1], the first's from 0, up to ends[r];
  /// ends are multiples of kShareUnit, and the last is values.size().
  virtual void share(std::span<float> values, std::span<const int64_t> ends) = 0;
  /// Gives the first process the shares of all, each of which is `own` in the
  /// process that it comes from; `values`, as in share() but on the host, is
  /// empty in the others.
  virtual void collect(
      std::span<const float> own, std::span<float> values, std::span<const int64_t> ends) = 0;
  /// Ends all processes with this exit code, whatever they are doing.
  virtual void abort(int code) = 0;

  /// After how many updates, again and again, a run should ask whether one of
  /// the processes is to stop: more than 1 where to ask is to wait for a
  /// device.
  virtual int64_t updates_between_questions() const { return 1; }

  /// The one that writes the run's files and speaks for all.
  bool is_first() const { return rank() == 0; }
  /// Tells whether it is true in any process.
  bool any(bool value) { return largest(value ? 1 : 0) != 0; }
  /// Returns when every process has called it.
  void barrier() { largest(0); }
};

/// One process: the sum is already there.
class SingleProcess : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  int64_t local_size() const override { return 1; }
  int64_t local_rank() const override { return 0; }
  void start_sum(std::span<float> /*bucket*/) override {}
  void start_sum(std::span<double> /*numbers*/) override {}
  void finish_sums() override {}
  void sum(std::span<double> /*values*/) override {}
  int64_t largest(int64_t value) override { return value; }
  void broadcast(std::span<std::byte> /*bytes*/, int64_t /*root*/) override {}
  void share(std::span<float> /*values*/, std::span<const int64_t> /*ends*/) override {}
  void collect(
      std::span<const float> own,
      std::span<float> values,
      std::span<const int64_t> /*ends*/) override {
    std::ranges::copy(own, values.begin());
  }
  void abort(int /*code*/) override {}
};

}  // namespace seqconv::internal
