#pragma once

#include "kernels/cuda/common/tiles.h"
#include "kernels/cuda/conv/normalize.h"

/// The step form of both convolutions: a block for some heads of one stream,
/// a thread for each of their channels, token by token.
namespace seqconv::internal::kernels::cuda {

template <class S>
struct ConvStepTask : TileTask<S> {
  TapSource taps;
  TilePlan plan;
  const float* bias = nullptr;
  S* state = nullptr;
  const int64_t* position = nullptr;

  /// Shared memory: taps, in rows as long as those of logits.
  SEQCONV_HD int64_t shared() const {
    return static_cast<int64_t>(plan.heads) * logit_pitch(taps.kernel_size) *
        static_cast<int64_t>(sizeof(float));
  }
};

/// About one channel for a thread, and as many heads as small shared memory
/// holds; at least one.
inline TilePlan plan_step(const ConvShape& shape) {
  const int64_t bytes =
      logit_pitch(static_cast<int>(shape.kernel_size)) * static_cast<int64_t>(sizeof(float));
  TilePlan plan;
  plan.set_tiles(
      shape,
      /*positions=*/1,
      kThreads,
      max<int64_t>(1, kWarp * 1024 / bytes));
  plan.blocks = shape.batch * plan.groups;
  return plan;
}

/// Adds the past of one channel, oldest first, and the input itself; then puts
/// the input into the ring.
template <class S>
SEQCONV_DEVICE float step_channel(
    const float* taps, int slots, int64_t now, int64_t channels, S* ring, S input, float sum) {
  const int past = static_cast<int>(min<int64_t>(slots, now));
  int slot = slots > 0 ? static_cast<int>((now - past) % slots) : 0;
  for (int j = slots - past; j < slots; ++j) {
    sum += taps[j] * widen(ring[slot * channels]);
    if (++slot == slots)
      slot = 0;
  }
  if (slots > 0)
    ring[now % slots * channels] = input;
  return sum + taps[slots] * widen(input);
}

struct ConvStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvStepTask<S>& task) {
    const int K = task.taps.kernel_size, R = task.head_channels;
    const int groups = task.plan.groups;
    const int64_t n = block.index() / groups;
    const int head = static_cast<int>(block.index() % groups) * task.plan.heads;
    const int heads = min(task.plan.heads, task.all_heads - head);
    float* const taps = shared_at<float>(block.shared(), 0);
    const int pitch = logit_pitch(K);
    const int64_t position = max<int64_t>(0, *task.position);
    const int64_t first_channel = static_cast<int64_t>(head) * R;
    for (int64_t t = 0; t < task.steps; ++t) {
      const int64_t now = position + t;
      if (t == 0 || task.taps.per_row) {
        const auto row_of = [&](int i, bool) {
          return tap_row(task.taps, task.taps.row(n, t, head + i), now, now + 1);
        };
        make_taps<S>(
            block,
            task.taps,
            heads,
            row_of,
            LogitRows{taps, pitch, heads},
            nullptr,
            [&](int i, int j, const float(&w)[kTapGroup]) {
              store_narrow<kTapGroup>(taps + i * pitch + j, w);
            });
      }
      block.each([&](int thread) {
        const int64_t at = task.element(n, t, first_channel);
        for (int c = thread; c < heads * R; c += kThreads) {
          S* const ring = task.state + n * (K - 1) * task.channels + first_channel + c;
          const float sum = step_channel<S>(
              taps + c / R * pitch,
              K - 1,
              now,
              task.channels,
              ring,
              task.x[at + c],
              task.bias == nullptr ? 0.0f : task.bias[first_channel + c]);
          task.out[at + c] = narrow<S>(sum);
        }
      });
    }
  }
};

}  // namespace seqconv::internal::kernels::cuda
