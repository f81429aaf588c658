#pragma once

#include "kernels/cuda/talk/backward.h"
#include "kernels/cuda/talk/forward.h"

/// The step form of TaLK, and from the arguments to launches (launches.h).
namespace seqconv::internal::kernels::cuda {

template <class S>
struct TalkStepTask : TalkTask<S> {
  S* state = nullptr;
  int64_t slots = 0;
  const int64_t* position = nullptr;
};

/// A thread for every channel of every stream, token by token.
struct TalkStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkStepTask<S>& task) {
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= task.batch * task.channels)
        return;
      const int64_t n = at / task.channels, c = at % task.channels;
      for (int64_t t = 0; t < task.steps; ++t)
        step(task, n, c, t);
    });
  }

 private:
  template <class S>
  static SEQCONV_DEVICE void step(const TalkStepTask<S>& task, int64_t n, int64_t c, int64_t t) {
    const int64_t C = task.channels, slots = task.slots;
    const int64_t now = max<int64_t>(0, *task.position) + t;
    const int64_t row = n * task.steps + t;
    S* const ring = task.state + n * slots * C + c;
    float left = 0;
    with_storage<S>(task.offsets.storage, [&](auto type) {
      left = widen(static_cast<const decltype(type)*>(
          task.offsets.left)[row * task.all_heads + c / task.head_channels]);
    });
    int whole = 0;
    float share = 0, sum = 0;
    split_distance(left * task.max_left, 0, static_cast<int>(min(slots, now)), whole, share);
    const auto seen = [&](int back) { return widen(ring[(now - back) % slots * C]); };
    if (share > 0)
      sum += share * seen(whole + 1);
    for (int back = whole; back > 0; --back)
      sum += seen(back);
    const S input = task.x[row * C + c];
    sum += widen(input);
    if (share != share)
      sum = share;
    if (slots > 0)
      ring[now % slots * C] = input;
    task.out[row * C + c] = narrow<S>(sum * task.scale);
  }
};

/// Sets what the passes have in common, args any of their arguments.
template <class S, class Args>
void set_talk(TalkTask<S>& task, const Args& args, const int64_t* lengths) {
  const TalkShape& shape = args.shape;
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
  task.offsets = args.offsets;
  task.x = args.x;
  task.set_shape(shape, lengths);
  task.row_bytes = static_cast<int>(shape.channels * sizeof(S));
  task.max_left = static_cast<float>(shape.max_left);
  task.max_right = static_cast<float>(shape.max_right);
  task.scale = 1.0f / static_cast<float>(shape.window());
}

/// Queues Body<V> by the task's plan, V as with_vector says.
template <template <int> class Body, int kBytes, class S, class Launcher>
void launch_talk(
    Launcher& launcher, TalkTask<S>& task, std::initializer_list<const void*> tensors) {
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
  TalkTask<S> task;
  set_talk(task, args, args.lengths);
  task.out = args.y;
  task.plan = plan_talk_forward(args.shape, launcher.device().shared);
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
  TalkTask<S> task;
  set_talk(task, args, args.lengths);
  task.grad_y = args.grad_y;
  task.out = args.grad_x;
  task.grad_left = args.grad_left;
  task.grad_right = args.grad_right;
  task.reach = reinterpret_cast<TalkSpan*>(args.workspace);
  task.plan = plan_talk_backward(args.shape, launcher.device().shared);
  TalkTask<S> reach = task;
  reach.plan.groups = 1;  // a block has all heads
  if (args.grad_x != nullptr)
    launcher.template run<TalkReachBody>(
        args.shape.batch * task.plan.tiles, kWarps * static_cast<int64_t>(sizeof(TalkSpan)), reach);
  // Difference arrays leave room for the threads of four channels each.
  launch_talk<TalkBackwardBody, 4 * sizeof(S)>(launcher, task, {args.x, args.grad_y, args.grad_x});
}

template <class S, class Launcher>
void run(Launcher& launcher, const TalkStep<S>& args) {
  const TalkShape& shape = args.shape;
  if (is_empty(shape))
    return;
  TalkStepTask<S> task;
  set_talk(task, args, nullptr);
  task.state = args.state;
  task.slots = args.slots;
  task.position = args.position;
  task.out = args.y;
  launcher.template run<TalkStepBody>(blocks_for(shape.batch * shape.channels), 0, task);
}

}  // namespace seqconv::internal::kernels::cuda
