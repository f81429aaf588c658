#pragma once

#include "kernels/cuda/short_conv/body.h"

/// The step form: a thread for a channel of a stream, token by token.
namespace seqconv::internal::kernels::cuda {

/// The row of the ring that stream n goes on with; negative: it is padding.
template <class S>
SEQCONV_DEVICE int64_t ring_row(const ShortConvStep<S>& task, int64_t n) {
  const int64_t row = task.rows == nullptr ? n : task.rows[n];
  return row < task.ring_rows ? row : -1;
}

struct ShortConvStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ShortConvStep<S>& task) {
    const ConvShape& shape = task.setup.shape;
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      const int64_t n = at / shape.channels, c = at % shape.channels;
      if (n >= shape.batch)
        return;
      const int64_t row = ring_row(task, n);
      const int64_t real = row < 0 ? 0 : valid_steps(task.setup.lengths, n, shape.steps);
      for (int64_t t = 0; t < real; ++t)
        step(task, n * shape.steps + t, row, c, max<int64_t>(0, task.positions[2 * row]) + t);
      for (int64_t t = real; t < shape.steps; ++t)
        task.y[(n * shape.steps + t) * shape.channels + c] = narrow<S>(0.0f);
    });
  }

 private:
  /// Input number `now` of a stream: its output, and its place in the ring.
  template <class S>
  static SEQCONV_DEVICE void step(
      const ShortConvStep<S>& task, int64_t token, int64_t row, int64_t c, int64_t now) {
    const ShortConvSetup& setup = task.setup;
    const int64_t C = setup.shape.channels, K = setup.shape.kernel_size, D = setup.shape.dilation;
    const int64_t group = c / (C / setup.groups);
    const int64_t head = token * setup.shape.heads + c / (C / setup.shape.heads);
    S* const ring = task.ring + row * task.slots * C + c;
    const S input = task.x[token * C + c];
    float sum[1] = {};
    for (int64_t j = 0; j < K; ++j) {
      const int64_t number = now - (K - 1 - j) * D;
      if (number < 0)
        continue;
      float tap = setup.weight.data == nullptr ? 0 : beside_at<S>(setup.weight, group * K + j);
      if (setup.dynamic.data != nullptr)
        tap += beside_at<S>(setup.dynamic, head * K + j);
      sum[0] += tap * widen(j == K - 1 ? input : ring[number % task.slots * C]);
    }
    if (task.slots > 0)
      ring[now % task.slots * C] = input;
    add_bias<1, S>(setup.bias, c, sum);
    sum[0] = activated(setup.end.activation, sum[0]);
    task.y[token * C + c] = narrow<S>(sum[0] + (setup.end.residual ? widen(input) : 0.0f));
  }
};

/// Moves positions on, a thread for a stream.
struct AdvanceBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ShortConvStep<S>& task) {
    block.each([&](int thread) {
      const int64_t n = block.index() * kThreads + thread;
      const int64_t row = n < task.setup.shape.batch ? ring_row(task, n) : -1;
      if (row < 0)
        return;
      int64_t* const position = task.positions + 2 * row;
      position[0] =
          max<int64_t>(0, position[0]) + valid_steps(task.setup.lengths, n, task.setup.shape.steps);
      position[1] = max(position[1], position[0]);
    });
  }
};

}  // namespace seqconv::internal::kernels::cuda
