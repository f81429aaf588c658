#pragma once

#include "kernels/cuda/conv_normalize.h"

/// Second stages: sums of partial results in an order fixed by the sizes.
namespace seqconv::kernels::cuda {

/// Partial results that one thread adds up.
inline constexpr int64_t kSumFanIn = 64;
/// Rows of grad_y that a thread adds up for the gradient of the bias.
inline constexpr int64_t kBiasRows = 128;

/// Results left when `count` are summed by kSumFanIn.
SEQCONV_HD int64_t sum_outputs(int64_t count) {
  return chunks_of(count, kSumFanIn);
}

/// to [sum_outputs(count), width] = sums of from [count, width].
template <class A>
struct SumTask {
  const A* from = nullptr;
  A* to = nullptr;
  int64_t count = 0;
  int64_t width = 0;
};

template <class A, class Block>
SEQCONV_DEVICE void sum_body(Block& block, const SumTask<A>& task) {
  const int64_t columns = chunks_of<int64_t>(task.width, block.threads());
  const int64_t chunk = block.index() / columns;
  const int64_t first = block.index() % columns * block.threads();
  block.each([&](int thread) {
    const int64_t i = first + thread;
    if (i >= task.width)
      return;
    const int64_t end = min((chunk + 1) * kSumFanIn, task.count);
    A sum = 0;
    for (int64_t p = chunk * kSumFanIn; p < end; ++p)
      sum += task.from[p * task.width + i];
    task.to[chunk * task.width + i] = sum;
  });
}

/// sums [chunks of kBiasRows, C] of grad_y [B * T, C] over real positions.
template <class S>
struct BiasTask {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  const int64_t* lengths = nullptr;
  const S* grad_y = nullptr;
  AccumulatorOf<S>* sums = nullptr;
};

/// Sum of channel c over rows [begin, end) of grad_y: so many sums side by side
/// that loads do not wait for each other.
template <class S>
SEQCONV_DEVICE AccumulatorOf<S>
sum_rows(const BiasTask<S>& task, int64_t begin, int64_t end, int64_t c) {
  using A = AccumulatorOf<S>;
  constexpr int kAtOnce = 8;
  const S* from = task.grad_y + begin * task.channels + c;
  A sums[kAtOnce] = {};
  int64_t row = begin;
  for (; row + kAtOnce <= end; row += kAtOnce) {
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      sums[i] += widen(*from);
      from += task.channels;
    }
  }
  for (; row < end; ++row, from += task.channels)
    sums[0] += widen(*from);
  SEQCONV_UNROLL
  for (int i = 1; i < kAtOnce; ++i)
    sums[0] += sums[i];
  return sums[0];
}

template <class S, class Block>
SEQCONV_DEVICE void bias_body(Block& block, const BiasTask<S>& task) {
  using A = AccumulatorOf<S>;
  const int64_t columns = chunks_of<int64_t>(task.channels, block.threads());
  const int64_t chunk = block.index() / columns;
  const int64_t first = (block.index() - chunk * columns) * block.threads();
  const int64_t begin = chunk * kBiasRows;
  const int64_t end = min(begin + kBiasRows, task.batch * task.steps);
  block.each([&](int thread) {
    const int64_t c = first + thread;
    if (c >= task.channels)
      return;
    // Real rows of one sequence after the other.
    int64_t b = begin / task.steps;
    A sum = 0;
    for (int64_t from = b * task.steps; from < end; from += task.steps, ++b) {
      const int64_t real = from + valid_steps(task.lengths, b, task.steps);
      sum += sum_rows(task, max(begin, from), min(end, real), c);
    }
    task.sums[chunk * task.channels + c] = sum;
  });
}

/// The last stage of the gradient of shared logits [H, K]: a block for a head
/// takes sums [H, K] with respect to its taps (or already to logits).
template <class S>
struct WeightTask {
  using A = AccumulatorOf<S>;

  TapSource taps;
  bool is_logit = false;
  const A* sums = nullptr;
  void* grad_logits = nullptr;

  /// Shared memory: a row of gradients and one of logits; the statistic.
  SEQCONV_HD int64_t row_bytes() const {
    return logit_pitch(taps.kernel_size) * static_cast<int64_t>(sizeof(A));
  }
  SEQCONV_HD int64_t shared() const {
    return 2 * row_bytes() + static_cast<int64_t>(sizeof(RowStats<A>));
  }
};

template <class S, class Block>
SEQCONV_DEVICE void weight_body(Block& block, const WeightTask<S>& task) {
  using A = AccumulatorOf<S>;
  const int K = task.taps.kernel_size;
  const int64_t base = block.index() * K;
  char* const shared = block.shared();
  A* const grads = reinterpret_cast<A*>(shared);
  const LogitRows<A> logits = {
      reinterpret_cast<A*>(shared + task.row_bytes()),
      logit_pitch(K),
      1};
  auto* const stats =
      reinterpret_cast<RowStats<A>*>(shared + 2 * task.row_bytes());
  block.each([&](int thread) {
    for (int j = thread; j < K; j += block.threads())
      grads[j] = task.sums[base + j];
  });
  if (!task.is_logit) {
    const auto row_of = [&](int, bool) { return TapRow{base, 0, K}; };
    const auto stats_of = [&](int) { return stats[0]; };
    make_taps<S>(
        block,
        task.taps,
        1,
        row_of,
        logits,
        stats,
        [](int, int, const A(&)[kTapGroup]) {});
    taps_backward<S>(
        block,
        task.taps,
        1,
        row_of,
        stats_of,
        logits,
        grads,
        logits.pitch);
  }
  write_rows<S>(
      block,
      task.taps,
      1,
      grads,
      logits.pitch,
      task.grad_logits,
      [&](int) { return base; });
}

}  // namespace seqconv::kernels::cuda
