#pragma once

#include "kernels/cuda/average/average.h"

/// The step form of a cumulative average, and from arguments to launches
/// (launches.h).
namespace seqconv::kernels::cuda {

/// A thread for a channel of a stream, token by token.
struct AverageStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(
      Block& block,
      const CumulativeAverageStep<S>& task) {
    const AverageShape& shape = task.shape;
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= shape.batch * shape.channels)
        return;
      const int64_t n = at / shape.channels, c = at % shape.channels;
      const int64_t position = max<int64_t>(0, *task.position);
      double sum = task.sums[at];
      for (int64_t t = 0; t < shape.steps; ++t) {
        const int64_t i = (n * shape.steps + t) * shape.channels + c;
        sum += static_cast<double>(widen(task.x[i]));
        task.y[i] =
            narrow<S>(static_cast<float>(sum * average_share(position + t)));
      }
      task.sums[at] = sum;
    });
  }
};

template <class S>
int64_t cumulative_average_workspace(const AverageShape& shape) {
  if (is_empty(shape))
    return 0;
  return plan_average(shape, sizeof(S), /*vector=*/1).kept() * shape.batch *
      shape.channels;
}

/// Queues the passes with V channels to a thread.
template <AverageOrder kOrder, int V, class S, class Launcher>
void launch_average(Launcher& launcher, const CumulativeAverage<S>& args) {
  const AverageShape& shape = args.shape;
  const AverageTask<S> task = {args, plan_average(shape, sizeof(S), V)};
  const int64_t kept = task.plan.kept();
  constexpr int64_t kShared = kAverageChunk * sizeof(double);
  if (kept > 0)
    launcher.template run<AverageBody<kOrder, V, /*kSumsOnly=*/true>>(
        shape.batch * kept * task.plan.strips,
        kShared,
        task);
  launcher.template run<AverageBody<kOrder, V, /*kSumsOnly=*/false>>(
      task.plan.blocks,
      kShared,
      task);
}

template <class S, class Launcher>
void run(Launcher& launcher, const CumulativeAverage<S>& args) {
  if (is_empty(args.shape))
    return;
  const auto launch = [&]<int V>(std::integral_constant<int, V>) {
    args.order == AverageOrder::kForward
        ? launch_average<AverageOrder::kForward, V>(launcher, args)
        : launch_average<AverageOrder::kBackward, V>(launcher, args);
  };
  with_vector<S, kAverageBytes>(args.shape.channels, {args.x, args.y}, launch);
}

template <class S, class Launcher>
void run(Launcher& launcher, const CumulativeAverageStep<S>& args) {
  const AverageShape& shape = args.shape;
  if (!is_empty(shape))
    launcher.template run<AverageStepBody>(
        blocks_for(shape.batch * shape.channels),
        0,
        args);
}

}  // namespace seqconv::kernels::cuda
