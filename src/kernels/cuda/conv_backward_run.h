#pragma once

#include "kernels/cuda/conv_band_backward.h"
#include "kernels/cuda/conv_run.h"
#include "kernels/cuda/conv_sum.h"

/// The backward pass of a convolution: the pass over its tiles, then sums of
/// what blocks left in the workspace.
namespace seqconv::kernels::cuda {

template <bool kPerRow, int V>
struct BackwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    conv_backward_body<kPerRow, V>(block, task);
  }
};
template <bool kPerRow, int kRows>
struct BandBackwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    band_backward_body<kPerRow, kRows>(block, task);
  }
};
struct SumBody {
  template <class Block, class A>
  static SEQCONV_DEVICE void run(Block& block, const SumTask<A>& task) {
    sum_body(block, task);
  }
};
struct BiasBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const BiasTask<S>& task) {
    bias_body(block, task);
  }
};
struct WeightBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const WeightTask<S>& task) {
    weight_body(block, task);
  }
};

/// to[0 .. count) = 0.
template <class A>
struct ZeroTask {
  A* to = nullptr;
  int64_t count = 0;
};
struct ZeroBody {
  template <class Block, class A>
  static SEQCONV_DEVICE void run(Block& block, const ZeroTask<A>& task) {
    block.each([&](int thread) {
      const int64_t i = block.index() * block.threads() + thread;
      if (i < task.count)
        task.to[i] = A{};
    });
  }
};
template <class Launcher, class A>
void launch_zero(Launcher& launcher, A* to, int64_t count) {
  if (count > 0)
    launcher.template run<ZeroBody>(
        chunks_of<int64_t>(count, kConvThreads),
        kConvThreads,
        0,
        ZeroTask<A>{to, count});
}

inline int64_t storage_bytes(Storage storage) {
  return storage == Storage::kDouble ? 8 : storage == Storage::kFloat ? 4 : 2;
}

/// Elements of [count, width] and of what its sums by stages leave, the last
/// one included.
inline int64_t sum_elements(int64_t count, int64_t width) {
  int64_t elements = count * width;
  while (count > 1) {
    count = sum_outputs(count);
    elements += count * width;
  }
  return elements;
}

/// Sums from [count, width] by stages. Results lie behind `from`; the last one
/// goes to `last` unless that is null. Gives where it is.
template <class A, class Launcher>
const A* launch_sums(
    Launcher& launcher,
    A* from,
    int64_t count,
    int64_t width,
    A* last) {
  while (count > 1) {
    const int64_t left = sum_outputs(count);
    A* const to = left == 1 && last != nullptr ? last : from + count * width;
    launcher.template run<SumBody>(
        left * chunks_of<int64_t>(width, kConvThreads),
        kConvThreads,
        0,
        SumTask<A>{from, to, count, width});
    from = to;
    count = left;
  }
  return from;
}

inline int64_t bias_chunks(const ConvShape& shape) {
  return chunks_of(shape.batch * shape.steps, kBiasRows);
}

template <class S, class Launcher>
void launch_bias(
    Launcher& launcher,
    const ConvBackward<S>& args,
    AccumulatorOf<S>* workspace) {
  const ConvShape& shape = args.setup.shape;
  const int64_t chunks = bias_chunks(shape), C = shape.channels;
  AccumulatorOf<S>* const first = chunks == 1 ? args.grad_bias : workspace;
  launcher.template run<BiasBody>(
      chunks * chunks_of<int64_t>(C, kConvThreads),
      kConvThreads,
      0,
      BiasTask<S>{
          shape.batch,
          shape.steps,
          C,
          args.setup.lengths,
          args.grad_y,
          first});
  launch_sums(launcher, first, chunks, C, args.grad_bias);
}

/// The task of a backward pass but for its workspace, and how it is run.
template <class S>
struct BackwardRun {
  ConvTask<S> task;
  bool per_row = false;

  BackwardRun(const ConvBackward<S>& args, LogitsOf kind, int64_t limit)
      : task(conv_task<S>(args.setup, kind)) {
    const ConvShape& shape = args.setup.shape;
    task.x = args.x;
    task.grad_y = args.grad_y;
    task.out = args.grad_x;
    task.grad_logits = args.grad_logits;
    per_row = is_per_row(task.taps, kind);
    if (!is_empty(shape))
      choose_plan(
          task,
          shape,
          ConvPass::kBackward,
          per_row,
          limit,
          {args.x, args.grad_y, args.grad_x});
  }

  /// Elements of the sums over positions, with those of the later stages.
  int64_t weight_elements(const ConvShape& shape) const {
    return sum_elements(task.plan.units, shape.heads * shape.kernel_size);
  }
};

/// `limit` is the launcher's shared_limit().
template <class S>
int64_t
backward_workspace(const ConvBackward<S>& args, LogitsOf kind, int64_t limit) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return 0;
  const int64_t sums = kind == LogitsOf::kHead && args.grad_logits != nullptr
      ? BackwardRun<S>(args, kind, limit).weight_elements(shape)
      : 0;
  const int64_t bias = args.grad_bias != nullptr
      ? sum_elements(bias_chunks(shape), shape.channels)
      : 0;
  return sums + bias;
}

template <class S, class Launcher>
void run_empty_backward(
    Launcher& launcher,
    const ConvBackward<S>& args,
    LogitsOf kind) {
  const ConvShape& shape = args.setup.shape;
  const int64_t bytes = kind == LogitsOf::kHead ? shape.heads *
          shape.kernel_size * storage_bytes(args.setup.logits.storage)
                                                : 0;
  if (args.grad_logits != nullptr)
    launch_zero(launcher, static_cast<char*>(args.grad_logits), bytes);
  if (args.grad_bias != nullptr)
    launch_zero(launcher, args.grad_bias, shape.channels);
}

template <LogitsOf kKind, class S, class Launcher>
void run_conv_backward(Launcher& launcher, const ConvBackward<S>& args) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return run_empty_backward(launcher, args, kKind);
  BackwardRun<S> run(args, kKind, launcher.shared_limit());
  A* workspace = args.workspace;
  const bool wants_logits = args.grad_logits != nullptr;
  if (kKind == LogitsOf::kHead && wants_logits) {
    run.task.sums = workspace;
    workspace += run.weight_elements(shape);
  }
  if (wants_logits || args.grad_x != nullptr)
    launch_conv<BackwardBody, BandBackwardBody, kKind>(
        launcher,
        run.task,
        run.per_row);
  if (kKind == LogitsOf::kHead && wants_logits) {
    WeightTask<S> last;
    last.taps = run.task.taps;
    last.is_logit = run.per_row;
    last.grad_logits = args.grad_logits;
    last.sums = launch_sums<A>(
        launcher,
        run.task.sums,
        run.task.plan.units,
        shape.heads * shape.kernel_size,
        nullptr);
    launcher.template run<WeightBody>(
        shape.heads,
        kConvThreads,
        last.shared(),
        last);
  }
  if (args.grad_bias != nullptr)
    launch_bias(launcher, args, workspace);
}

}  // namespace seqconv::kernels::cuda
