#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <memory>
#include <vector>

#include "train/processes/communicator.h"

namespace seqconv::internal {

/// What a TorchCommunicator speaks through.
struct TorchCommunicatorParts {
  c10::intrusive_ptr<c10d::Backend> backend;
  /// Where the model lies, and with it buckets and shares.
  at::Device device;
  /// For what is on the host, of the same processes in the same order. Null:
  /// such values go by the device, whose work the host then waits for.
  std::shared_ptr<Communicator> host;
  int64_t local_size = 1;  ///< read where there is no host
  int64_t local_rank = 0;
};

/// The processes of one of LibTorch's process groups, NCCL's first of all.
/// Sums and shares are put behind what the present stream of the device has to
/// do, and before what it is given afterwards: the host waits for neither.
class TorchCommunicator : public Communicator {
 public:
  /// Longest waits for the slowest process, by the backend's own clock, which
  /// ends the program: of an update's sums, ...
  static constexpr auto kMostOfASum = std::chrono::minutes(10);
  /// ... of anything else, such as the end of a validation, ...
  static constexpr auto kMostOfAPause = std::chrono::hours(1);
  /// ... and of that before the first update: a text may take hours to prepare.
  static constexpr auto kMostOfPreparing = std::chrono::hours(24);
  /// Elements that are copied between host and device at a time.
  static constexpr int64_t kPiece = int64_t{1} << 24;
  /// A wait for the device now and then costs nothing, and a signal is heard
  /// within seconds.
  static constexpr int64_t kUpdatesBetweenQuestions = 8;

  /// UsageError when the host knows other processes than the backend.
  explicit TorchCommunicator(TorchCommunicatorParts parts, int64_t piece = kPiece);
  TorchCommunicator(const TorchCommunicator&) = delete;
  TorchCommunicator& operator=(const TorchCommunicator&) = delete;
  /// Waits for the others, but not while an exception is on its way: they may
  /// be waiting for what this process will not do any more.
  ~TorchCommunicator() override;

  int64_t rank() const override;
  int64_t size() const override;
  int64_t local_size() const override;
  int64_t local_rank() const override;
  void start_sum(std::span<float> bucket) override;
  void start_sum(std::span<double> numbers) override;
  void finish_sums() override;
  void sum(std::span<double> values) override;
  int64_t largest(int64_t value) override;
  void broadcast(std::span<std::byte> bytes, int64_t root) override;
  void share(std::span<float> values, std::span<const int64_t> ends) override;
  void collect(
      std::span<const float> own, std::span<float> values, std::span<const int64_t> ends) override;
  /// Without a host this process alone: its starter ends the others.
  void abort(int code) override;
  int64_t updates_between_questions() const override;

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;

  void start(const at::Tensor& values);
  void reduce(const at::Tensor& here, c10d::ReduceOp::RedOpType how);
  void send(const at::Tensor& values, int64_t root);
  void wait_at_most(std::chrono::milliseconds time);
  void pause();
  void check_ends(std::span<const int64_t> ends) const;

  TorchCommunicatorParts parts_;
  int64_t piece_;
  std::chrono::milliseconds most_{0};
  bool has_begun_ = false;  // to make updates
  std::vector<Work> started_;
};

}  // namespace seqconv::internal
