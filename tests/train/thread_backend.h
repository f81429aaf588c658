#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <vector>

#include "meeting.h"

namespace seqconv::internal::testing {

/// What one of a process group's members was asked for, in this order.
struct BackendCall {
  std::string name;
  std::chrono::milliseconds timeout;
};

/// A process group whose members are threads that meet. Nothing is done before
/// it is waited for, as numbers of a device are nobody's until then; what was
/// asked for before comes first.
class ThreadBackend : public c10d::Backend {
 public:
  ThreadBackend(Meeting& meeting, int64_t rank, int64_t size);

  const std::string getBackendName() const override { return "threads"; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void shutdown() override { note("shutdown"); }
  c10::intrusive_ptr<c10d::Work> allreduce(
      std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> broadcast(
      std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(
      std::vector<std::vector<at::Tensor>>& outputs,
      std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(
      at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;

  const std::vector<BackendCall>& calls() const { return calls_; }

 private:
  struct Queue;
  class LateWork;

  void note(const std::string& name) { calls_.push_back({name, timeout_}); }
  c10::intrusive_ptr<c10d::Work> later(std::function<void()> work);

  Meeting& meeting_;
  std::chrono::milliseconds timeout_{0};
  std::vector<BackendCall> calls_;
  std::shared_ptr<Queue> queue_;
};

c10::intrusive_ptr<ThreadBackend> make_thread_backend(Meeting& meeting, int64_t rank, int64_t size);

}  // namespace seqconv::internal::testing
