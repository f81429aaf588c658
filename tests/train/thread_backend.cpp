#include "thread_backend.h"

#include <ATen/ATen.h>

#include <deque>

namespace seqconv::internal::testing {

struct ThreadBackend::Queue {
  std::deque<std::function<void()>> waiting;
  int64_t begun = 0;  // that have left the queue

  void run_to(int64_t number) {
    for (; begun < number; ++begun) {
      waiting.front()();
      waiting.pop_front();
    }
  }
};

class ThreadBackend::LateWork : public c10d::Work {
 public:
  LateWork(std::shared_ptr<Queue> queue, int64_t number)
      : queue_(std::move(queue)), number_(number) {}
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    queue_->run_to(number_);
    return true;
  }

 private:
  std::shared_ptr<Queue> queue_;
  int64_t number_;
};

namespace {

/// What a member brings.
struct Part {
  std::vector<at::Tensor> outputs;
  at::Tensor input;
};

Part& part(void* pointer) {
  return *static_cast<Part*>(pointer);
}

void check_alike(const at::Tensor& one, const at::Tensor& other) {
  if (one.sizes() != other.sizes() || one.scalar_type() != other.scalar_type())
    throw std::logic_error("the members of a group send different things");
}

void reduce_parts(const std::vector<void*>& parts, c10d::ReduceOp::RedOpType how) {
  at::Tensor total = part(parts[0]).input.clone();
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    const at::Tensor& more = part(parts[rank]).input;
    check_alike(total, more);
    if (how == c10d::ReduceOp::SUM)
      total += more;
    else if (how == c10d::ReduceOp::MAX)
      total = at::maximum(total, more);
    else
      throw std::logic_error("not what these threads can do");
  }
  for (void* pointer : parts)
    part(pointer).input.copy_(total);
}

/// Every member's input becomes the output of its rank, in all.
void gather_parts(const std::vector<void*>& parts) {
  for (size_t rank = 0; rank < parts.size(); ++rank)
    for (void* pointer : parts) {
      check_alike(part(pointer).outputs.at(rank), part(parts[rank]).input);
      part(pointer).outputs[rank].copy_(part(parts[rank]).input);
    }
}

}  // namespace

ThreadBackend::ThreadBackend(Meeting& meeting, int64_t rank, int64_t size)
    : Backend(static_cast<int>(rank), static_cast<int>(size)),
      meeting_(meeting),
      queue_(std::make_shared<Queue>()) {}

c10::intrusive_ptr<c10d::Work> ThreadBackend::later(std::function<void()> work) {
  queue_->waiting.push_back(std::move(work));
  return c10::make_intrusive<LateWork>(
      queue_, queue_->begun + static_cast<int64_t>(queue_->waiting.size()));
}

c10::intrusive_ptr<c10d::Work> ThreadBackend::allreduce(
    std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  note("allreduce");
  return later([this, tensor = tensors.at(0), how = options.reduceOp.op_] {
    Part own{.input = tensor};
    meeting_.meet(getRank(), &own, [&](const auto& parts) { reduce_parts(parts, how); });
  });
}

c10::intrusive_ptr<c10d::Work> ThreadBackend::broadcast(
    std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  note("broadcast");
  return later([this, tensor = tensors.at(0), root = options.rootRank] {
    Part own{.input = tensor};
    meeting_.meet(getRank(), &own, [&](const std::vector<void*>& parts) {
      const at::Tensor given = part(parts.at(static_cast<size_t>(root))).input;
      for (void* pointer : parts) {
        check_alike(part(pointer).input, given);
        part(pointer).input.copy_(given);
      }
    });
  });
}

c10::intrusive_ptr<c10d::Work> ThreadBackend::allgather(
    std::vector<std::vector<at::Tensor>>& outputs,
    std::vector<at::Tensor>& inputs,
    const c10d::AllgatherOptions& /*options*/) {
  note("allgather");
  return later([this, all = outputs.at(0), input = inputs.at(0)] {
    Part own{all, input};
    meeting_.meet(getRank(), &own, gather_parts);
  });
}

c10::intrusive_ptr<c10d::Work> ThreadBackend::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& /*options*/) {
  note("_allgather_base");
  return later([this, output, input] {
    Part own{output.chunk(getSize()), input};
    meeting_.meet(getRank(), &own, gather_parts);
  });
}

c10::intrusive_ptr<ThreadBackend> make_thread_backend(
    Meeting& meeting, int64_t rank, int64_t size) {
  return c10::make_intrusive<ThreadBackend>(meeting, rank, size);
}

}  // namespace seqconv::internal::testing
