#pragma once

#include "kernels/cuda/conv_normalize.h"

/// The step form of both convolutions: a block for some heads of one stream,
/// a thread for each of their channels, token by token.
namespace seqconv::kernels::cuda {

template <class S>
struct ConvStepTask {
  TapSource taps;
  bool per_row = false;  ///< logits for every input
  int64_t steps = 0;
  int64_t channels = 0;
  int all_heads = 1;
  int head_channels = 1;
  int heads = 1;   ///< of a block
  int groups = 1;  ///< of heads
  const S* x = nullptr;
  const AccumulatorOf<S>* bias = nullptr;
  S* state = nullptr;
  const int64_t* position = nullptr;
  S* y = nullptr;

  /// Shared memory: taps, in rows as long as those of logits.
  SEQCONV_HD int64_t shared() const {
    return static_cast<int64_t>(heads) * logit_pitch(taps.kernel_size) *
        static_cast<int64_t>(sizeof(AccumulatorOf<S>));
  }
};

/// Heads of a block of the step form: about one channel for a thread, as many
/// as small shared memory holds; at least one.
inline int step_heads(const ConvShape& shape, int threads, int sum_bytes) {
  const int64_t bytes =
      logit_pitch(static_cast<int>(shape.kernel_size)) * sum_bytes;
  const int64_t fit = max<int64_t>(1, kWarp * 1024 / bytes);
  return static_cast<int>(clamped<int64_t>(
      threads / shape.head_channels(),
      1,
      min(fit, shape.heads)));
}

/// Adds the past of one channel, oldest first, and the input itself; then puts
/// the input into the ring.
template <class S>
SEQCONV_DEVICE AccumulatorOf<S> step_channel(
    const AccumulatorOf<S>* taps,
    int slots,
    int64_t now,
    int64_t channels,
    S* ring,
    S input,
    AccumulatorOf<S> sum) {
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

template <class S, class Block>
SEQCONV_DEVICE void conv_step_body(Block& block, const ConvStepTask<S>& task) {
  using A = AccumulatorOf<S>;
  const int K = task.taps.kernel_size, R = task.head_channels;
  const int64_t n = block.index() / task.groups;
  const int head = static_cast<int>(block.index() % task.groups) * task.heads;
  const int heads = min(task.heads, task.all_heads - head);
  A* const taps = reinterpret_cast<A*>(block.shared());
  const int pitch = logit_pitch(K);
  const int64_t position = max<int64_t>(0, *task.position);
  const int64_t first_channel = static_cast<int64_t>(head) * R;
  for (int64_t t = 0; t < task.steps; ++t) {
    const int64_t now = position + t;
    if (t == 0 || task.per_row || task.taps.renormalize_edges) {
      const auto row_of = [&](int i, bool) {
        return tap_row(task.taps, task.taps.row(n, t, head + i), now, now + 1);
      };
      make_taps<S>(
          block,
          task.taps,
          heads,
          row_of,
          LogitRows<A>{taps, pitch, heads},
          nullptr,
          [&](int i, int j, const A(&w)[kTapGroup]) {
            store_narrow<kTapGroup>(taps + i * pitch + j, w);
          });
    }
    block.each([&](int thread) {
      const int64_t at = (n * task.steps + t) * task.channels + first_channel;
      for (int c = thread; c < heads * R; c += block.threads()) {
        S* const ring =
            task.state + n * (K - 1) * task.channels + first_channel + c;
        const A sum = step_channel<S>(
            taps + c / R * pitch,
            K - 1,
            now,
            task.channels,
            ring,
            task.x[at + c],
            task.bias == nullptr ? A(0) : task.bias[first_channel + c]);
        task.y[at + c] = Narrow<S>::from(sum);
      }
    });
  }
}

}  // namespace seqconv::kernels::cuda
