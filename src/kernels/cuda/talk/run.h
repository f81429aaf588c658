#pragma once

#include <type_traits>

#include "kernels/cuda/talk/backward.h"
#include "kernels/cuda/talk/forward.h"

/// The step form of TaLK, and from the arguments to launches (launches.h).
namespace seqconv::kernels::cuda {

template <class S>
struct TalkStepTask {
  TalkStep<S> args;
  int64_t head_channels = 1;
  float max_left = 0;
  float scale = 1;
};

/// A thread for every channel of every stream, token by token.
struct TalkStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkStepTask<S>& task) {
    const TalkShape& shape = task.args.shape;
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= shape.batch * shape.channels)
        return;
      const int64_t n = at / shape.channels, c = at % shape.channels;
      for (int64_t t = 0; t < shape.steps; ++t)
        step(task, n, c, t);
    });
  }

 private:
  template <class S>
  static SEQCONV_DEVICE void
  step(const TalkStepTask<S>& task, int64_t n, int64_t c, int64_t t) {
    const TalkStep<S>& args = task.args;
    const int64_t C = args.shape.channels, slots = args.slots;
    const int64_t now = max<int64_t>(0, *args.position) + t;
    const int64_t row = n * args.shape.steps + t;
    S* const ring = args.state + n * slots * C + c;
    float left = 0;
    with_storage<S>(args.offsets.storage, [&](auto type) {
      left = widen(static_cast<const decltype(type)*>(
          args.offsets.left)[row * args.shape.heads + c / task.head_channels]);
    });
    int whole = 0;
    float share = 0, sum = 0;
    split_distance(
        left * task.max_left,
        0,
        static_cast<int>(min(slots, now)),
        whole,
        share);
    const auto seen = [&](int back) {
      return widen(ring[(now - back) % slots * C]);
    };
    if (share > 0)
      sum += share * seen(whole + 1);
    for (int back = whole; back > 0; --back)
      sum += seen(back);
    const S input = args.x[row * C + c];
    sum += widen(input);
    if (share != share)
      sum = share;
    if (slots > 0)
      ring[now % slots * C] = input;
    args.y[row * C + c] = narrow<S>(sum * task.scale);
  }
};

template <class S>
TalkTask<S> talk_task(
    const TalkShape& shape,
    const TalkOffsets& offsets,
    const int64_t* lengths) {
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
  task.set_shape(shape, lengths);
  task.row_bytes = static_cast<int>(shape.channels * sizeof(S));
  task.max_left = static_cast<float>(shape.max_left);
  task.max_right = static_cast<float>(shape.max_right);
  task.scale = 1.0f / static_cast<float>(shape.window());
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
  if constexpr (V > 1) {
    if (head_channels % V != 0 || !are_aligned(tensors, kBytes))
      return with_vector<S, kBytes / 2>(head_channels, tensors, run);
  }
  run(std::integral_constant<int, V>{});
}

/// Queues Body<V> by the task's plan, V as with_vector says.
template <template <int> class Body, int kBytes, class S, class Launcher>
void launch_talk(
    Launcher& launcher,
    TalkTask<S>& task,
    std::initializer_list<const void*> tensors) {
  const auto run = [&]<int V>(std::integral_constant<int, V>) {
    task.plan.set_vector(V);
    launcher.template run<Body<V>>(task.plan.blocks, task.plan.shared, task);
  };
  with_vector<S, kBytes>(task.head_channels, tensors, run);
}

template <class S, class Launcher>
void run(Launcher& launcher, const TalkForward<S>& args) {
  if (is_empty(args.shape))
    return;
  TalkTask<S> task = talk_task<S>(args.shape, args.offsets, args.lengths);
  task.x = args.x;
  task.out = args.y;
  task.plan = plan_talk_forward(args.shape);
  launch_talk<TalkForwardBody, 16>(launcher, task, {args.x, args.y});
}

inline int64_t talk_workspace(const TalkShape& shape) {
  return shape.batch * chunks_of<int64_t>(shape.steps, kTalkTile) *
      static_cast<int64_t>(sizeof(TalkSpan) / sizeof(int32_t));
}

template <class S, class Launcher>
void run(Launcher& launcher, const TalkBackward<S>& args) {
  if (is_empty(args.shape))
    return;
  TalkTask<S> task = talk_task<S>(args.shape, args.offsets, args.lengths);
  task.x = args.x;
  task.grad_y = args.grad_y;
  task.out = args.grad_x;
  task.grad_left = args.grad_left;
  task.grad_right = args.grad_right;
  task.reach = reinterpret_cast<TalkSpan*>(args.workspace);
  task.plan = plan_talk_backward(args.shape);
  TalkTask<S> reach = task;
  reach.plan.groups = 1;  // a block has all heads
  if (args.grad_x != nullptr)
    launcher.template run<TalkReachBody>(
        args.shape.batch * task.plan.tiles,
        kWarps * static_cast<int64_t>(sizeof(TalkSpan)),
        reach);
  // Difference arrays leave room for the threads of four channels each.
  launch_talk<TalkBackwardBody, 4 * sizeof(S)>(
      launcher,
      task,
      {args.x, args.grad_y, args.grad_x});
}

template <class S, class Launcher>
void run(Launcher& launcher, const TalkStep<S>& args) {
  const TalkShape& shape = args.shape;
  if (is_empty(shape))
    return;
  launcher.template run<TalkStepBody>(
      blocks_for(shape.batch * shape.channels),
      0,
      TalkStepTask<S>{
          args,
          shape.head_channels(),
          static_cast<float>(shape.max_left),
          1.0f / static_cast<float>(shape.window())});
}

}  // namespace seqconv::kernels::cuda
