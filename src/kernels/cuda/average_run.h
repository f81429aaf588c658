#pragma once

#include "kernels/cuda/average.h"
#include "kernels/cuda/launches.h"

/// From the arguments of a cumulative average to launches (launches.h).
namespace seqconv::kernels::cuda {

template <AverageOrder kOrder, int V>
struct AverageBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const AverageTask<S>& task) {
    average_body<kOrder, V>(block, task);
  }
};
template <AverageOrder kOrder, int V>
struct AverageSumsBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const AverageTask<S>& task) {
    average_sums_body<kOrder, V>(block, task);
  }
};
struct AverageCarryBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const AverageCarryTask& task) {
    average_carry_body(block, task);
  }
};
struct AverageStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const AverageStepTask<S>& task) {
    average_step_body(block, task);
  }
};

template <class S>
int64_t average_workspace(const AverageShape& shape) {
  if (is_empty(shape))
    return 0;
  return plan_average(shape, sizeof(S), /*vector=*/1).kept() * shape.batch *
      shape.channels;
}

/// Queues the passes with V channels to a thread.
template <AverageOrder kOrder, int V, class S, class Launcher>
void launch_average(Launcher& launcher, const CumulativeAverage<S>& args) {
  const AverageShape& shape = args.shape;
  AverageTask<S> task;
  task.plan = plan_average(shape, sizeof(S), V);
  task.batch = shape.batch;
  task.steps = shape.steps;
  task.channels = shape.channels;
  task.lengths = args.lengths;
  task.x = args.x;
  task.y = args.y;
  task.chunk_sums = args.workspace;
  const int64_t kept = task.plan.kept();
  if (kept > 0) {
    launcher.template run<AverageSumsBody<kOrder, V>>(
        shape.batch * kept * task.plan.strips,
        kAverageThreads,
        AverageMemory<S>::bytes(V),
        task);
    launcher.template run<AverageCarryBody>(
        chunks_of<int64_t>(shape.batch * shape.channels, kAverageThreads),
        kAverageThreads,
        0,
        AverageCarryTask{shape.batch, kept, shape.channels, args.workspace});
  }
  launcher.template run<AverageBody<kOrder, V>>(
      task.plan.blocks,
      kAverageThreads,
      AverageMemory<S>::bytes(V),
      task);
}

template <AverageOrder kOrder, class S, class Launcher>
void run_average(Launcher& launcher, const CumulativeAverage<S>& args) {
  constexpr int kWide = kAverageBytes / static_cast<int>(sizeof(S));
  if (is_empty(args.shape))
    return;
  if constexpr (kWide > 1) {
    if (args.shape.channels % kWide == 0 &&
        are_aligned({args.x, args.y}, kAverageBytes))
      return launch_average<kOrder, kWide>(launcher, args);
  }
  launch_average<kOrder, 1>(launcher, args);
}

template <class S, class Launcher>
void run_average_step(
    Launcher& launcher,
    const CumulativeAverageStep<S>& args) {
  const AverageShape& shape = args.shape;
  if (is_empty(shape))
    return;
  AverageStepTask<S> task;
  task.batch = shape.batch;
  task.steps = shape.steps;
  task.channels = shape.channels;
  task.position = args.position;
  task.x = args.x;
  task.sums = args.sums;
  task.y = args.y;
  launcher.template run<AverageStepBody>(
      chunks_of<int64_t>(shape.batch * shape.channels, kAverageThreads),
      kAverageThreads,
      0,
      task);
}

}  // namespace seqconv::kernels::cuda
