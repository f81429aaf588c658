#pragma once

#include "kernels/cuda/launches.h"
#include "kernels/cuda/talk_backward.h"
#include "kernels/cuda/talk_forward.h"
#include "seqconv/base/error.h"

/// The step form of TaLK, and from the arguments to launches (launches.h).
namespace seqconv::kernels::cuda {

template <class S>
struct TalkStepTask {
  TalkOffsets offsets;
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  int all_heads = 1;
  int head_channels = 1;
  AccumulatorOf<S> max_left = 0;
  AccumulatorOf<S> scale = 1;
  const S* x = nullptr;
  S* state = nullptr;
  int slots = 0;
  const int64_t* position = nullptr;
  S* y = nullptr;
};

/// A thread for every channel of every stream, token by token.
template <class S, class Block>
SEQCONV_DEVICE void talk_step_body(Block& block, const TalkStepTask<S>& task) {
  using A = AccumulatorOf<S>;
  block.each([&](int thread) {
    const int64_t at = block.index() * block.threads() + thread;
    if (at >= task.batch * task.channels)
      return;
    const int64_t n = at / task.channels, c = at % task.channels;
    const int64_t position = max<int64_t>(0, *task.position);
    S* const ring = task.state + n * task.slots * task.channels + c;
    for (int64_t t = 0; t < task.steps; ++t) {
      const int64_t now = position + t, row = n * task.steps + t;
      const S input = task.x[row * task.channels + c];
      const A left = load_stored<A>(
          task.offsets.left,
          task.offsets.storage,
          row * task.all_heads + c / task.head_channels);
      const int past = static_cast<int>(min<int64_t>(task.slots, now));
      int whole = 0;
      A share = 0;
      split_distance(left * task.max_left, 0, past, whole, share);
      A sum = 0;
      const auto seen = [&](int back) {
        return widen(ring[(now - back) % task.slots * task.channels]);
      };
      if (share > 0)
        sum += share * seen(whole + 1);
      for (int back = whole; back > 0; --back)
        sum += seen(back);
      sum += widen(input);
      if (share != share)
        sum = share;
      if (task.slots > 0)
        ring[now % task.slots * task.channels] = input;
      task.y[row * task.channels + c] = Narrow<S>::from(sum * task.scale);
    }
  });
}

template <int V>
struct TalkForwardBody {
  static constexpr int kMinBlocks = 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    talk_forward_body<V>(block, task);
  }
};
struct TalkReachBody {
  static constexpr int kMinBlocks = 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    talk_reach_body(block, task);
  }
};
template <int V>
struct TalkBackwardBody {
  // Of four channels the compiler's own choice spills least: 8 bytes, float16.
  static constexpr int kMinBlocks = V == 4 ? 0 : 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    talk_backward_body<V>(block, task);
  }
};
struct TalkStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkStepTask<S>& task) {
    talk_step_body(block, task);
  }
};

template <class S>
TalkTask<S> talk_task(
    const TalkShape& shape,
    const TalkOffsets& offsets,
    const int64_t* lengths) {
  using A = AccumulatorOf<S>;
  SEQCONV_CHECK(
      shape.steps < INT32_MAX && shape.window() < INT32_MAX,
      "[cuda] talk takes less than 2^31 positions, but got T = ",
      shape.steps,
      " and a window of ",
      shape.window());
  constexpr int64_t kMaxChannels = INT32_MAX / sizeof(S);
  SEQCONV_CHECK(
      shape.channels <= kMaxChannels,
      "[cuda] talk takes at most ",
      kMaxChannels,
      " channels, but got ",
      shape.channels);
  TalkTask<S> task;
  task.offsets = offsets;
  task.batch = shape.batch;
  task.steps = shape.steps;
  task.channels = shape.channels;
  task.row_bytes = static_cast<int>(shape.channels * sizeof(S));
  task.all_heads = static_cast<int>(shape.heads);
  task.head_channels = static_cast<int>(shape.head_channels());
  task.max_left = static_cast<A>(shape.max_left);
  task.max_right = static_cast<A>(shape.max_right);
  task.scale = A(1) / static_cast<A>(shape.window());
  task.lengths = lengths;
  return task;
}

/// run(V) for the most channels that a thread can read at once, in at most
/// kBytes: a head has a multiple of V and every tensor is aligned.
template <class S, int kBytes, class Run>
void with_vector(
    int64_t head_channels,
    std::initializer_list<const void*> tensors,
    const Run& run) {
  constexpr int V = kBytes / static_cast<int>(sizeof(S));
  // float64 is for checks: one width is enough.
  if constexpr (V > 1 && sizeof(S) < 8) {
    if (head_channels % V != 0 || !are_aligned(tensors, kBytes))
      return with_vector<S, kBytes / 2>(head_channels, tensors, run);
    run(std::integral_constant<int, V>{});
  } else {
    run(std::integral_constant<int, 1>{});
  }
}

template <class S, class Launcher>
void run_talk_forward(Launcher& launcher, const TalkForward<S>& args) {
  const TalkShape& shape = args.shape;
  if (is_empty(shape))
    return;
  TalkTask<S> task = talk_task<S>(shape, args.offsets, args.lengths);
  task.x = args.x;
  task.out = args.y;
  task.plan = plan_talk_forward(shape, sizeof(AccumulatorOf<S>));
  const auto run = [&]<int V>(std::integral_constant<int, V>) {
    task.plan.set_columns(V);
    launcher.template run<TalkForwardBody<V>>(
        task.plan.blocks,
        kTalkThreads,
        task.plan.shared,
        task);
  };
  with_vector<S, 16>(shape.head_channels(), {args.x, args.y}, run);
}

template <class S, class Launcher>
void run_talk_backward(Launcher& launcher, const TalkBackward<S>& args) {
  const TalkShape& shape = args.shape;
  if (is_empty(shape))
    return;
  TalkTask<S> task = talk_task<S>(shape, args.offsets, args.lengths);
  task.x = args.x;
  task.grad_y = args.grad_y;
  task.out = args.grad_x;
  task.grad_left = args.grad_left;
  task.grad_right = args.grad_right;
  task.reach = args.workspace;
  task.plan = plan_talk_backward(shape, sizeof(AccumulatorOf<S>));
  TalkTask<S> reach = task;
  reach.plan.groups = 1;  // a block has all heads
  if (args.grad_x != nullptr)
    launcher.template run<TalkReachBody>(
        shape.batch * task.plan.tiles,
        kTalkThreads,
        kTalkThreads * static_cast<int64_t>(sizeof(TalkSpan)),
        reach);
  // Difference arrays leave room for the threads of four channels each.
  with_vector<S, min<int>(4 * sizeof(S), 16)>(
      shape.head_channels(),
      {args.x, args.grad_y, args.grad_x},
      [&]<int V>(std::integral_constant<int, V>) {
        task.plan.set_columns(V);
        launcher.template run<TalkBackwardBody<V>>(
            task.plan.blocks,
            kTalkThreads,
            task.plan.shared,
            task);
      });
}

inline int64_t talk_workspace(const TalkShape& shape) {
  return shape.batch * chunks_of<int64_t>(shape.steps, kTalkTile) *
      shape.heads * 2;
}

template <class S, class Launcher>
void run_talk_step(Launcher& launcher, const TalkStep<S>& args) {
  using A = AccumulatorOf<S>;
  const TalkShape& shape = args.shape;
  if (is_empty(shape))
    return;
  TalkStepTask<S> task;
  task.offsets = args.offsets;
  task.batch = shape.batch;
  task.steps = shape.steps;
  task.channels = shape.channels;
  task.all_heads = static_cast<int>(shape.heads);
  task.head_channels = static_cast<int>(shape.head_channels());
  task.max_left = static_cast<A>(shape.max_left);
  task.scale = A(1) / static_cast<A>(shape.window());
  task.x = args.x;
  task.state = args.state;
  task.slots = static_cast<int>(args.slots);
  task.position = args.position;
  task.y = args.y;
  launcher.template run<TalkStepBody>(
      chunks_of<int64_t>(shape.batch * shape.channels, kTalkThreads),
      kTalkThreads,
      0,
      task);
}

}  // namespace seqconv::kernels::cuda
