#pragma once

#include "kernels/cuda/conv/normalize.h"

/// Second stages: sums of partial results in an order fixed by the sizes.
namespace seqconv::kernels::cuda {

/// Partial results that one thread adds up.
inline constexpr int64_t kSumFanIn = 64;
/// Rows of grad_y that a thread adds up for the gradient of the bias.
inline constexpr int64_t kBiasRows = 128;

/// Results left when `count` are summed by kSumFanIn: of none, one zero.
SEQCONV_HD int64_t sum_outputs(int64_t count) {
  return max<int64_t>(1, chunks_of(count, kSumFanIn));
}

/// A thread's place in [rows, width], a block having kThreads columns of a row.
struct SumPlace {
  int64_t row;
  int64_t column;

  SEQCONV_DEVICE SumPlace(int64_t block, int thread, int64_t width) {
    const int64_t columns = chunks_of<int64_t>(width, kThreads);
    row = block / columns;
    column = (block - row * columns) * kThreads + thread;
  }
};

/// to [sum_outputs(count), width] = sums of from [count, width].
struct SumTask {
  const float* from = nullptr;
  float* to = nullptr;
  int64_t count = 0;
  int64_t width = 0;
};
struct SumBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const SumTask& task) {
    block.each([&](int thread) {
      const SumPlace at(block.index(), thread, task.width);
      if (at.column >= task.width)
        return;
      const int64_t end = min((at.row + 1) * kSumFanIn, task.count);
      float sum = 0;
      for (int64_t p = at.row * kSumFanIn; p < end; ++p)
        sum += task.from[p * task.width + at.column];
      task.to[at.row * task.width + at.column] = sum;
    });
  }
};

/// sums [chunks of kBiasRows, C] of grad_y [B * T, C] over real positions.
template <class S>
struct BiasTask {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  const int64_t* lengths = nullptr;
  const S* grad_y = nullptr;
  float* sums = nullptr;
};

/// Sum of channel c over rows [begin, end) of grad_y: so many sums side by side
/// that loads do not wait for each other.
template <class S>
SEQCONV_DEVICE float
sum_rows(const BiasTask<S>& task, int64_t begin, int64_t end, int64_t c) {
  constexpr int kAtOnce = 8;
  const S* from = task.grad_y + begin * task.channels + c;
  float sums[kAtOnce] = {};
  int64_t row = begin;
  for (; row + kAtOnce <= end; row += kAtOnce) {
    unroll<kAtOnce>([&](int i) {
      sums[i] += widen(*from);
      from += task.channels;
    });
  }
  for (; row < end; ++row, from += task.channels)
    sums[0] += widen(*from);
  SEQCONV_UNROLL
  for (int i = 1; i < kAtOnce; ++i)
    sums[0] += sums[i];
  return sums[0];
}

struct BiasBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const BiasTask<S>& task) {
    block.each([&](int thread) {
      const SumPlace at(block.index(), thread, task.channels);
      if (at.column >= task.channels)
        return;
      const int64_t T = task.steps, begin = at.row * kBiasRows;
      const int64_t end = min(begin + kBiasRows, task.batch * T);
      // Real rows of one sequence after the other.
      int64_t b = begin / T;
      float sum = 0;
      for (int64_t from = b * T; from < end; from += T, ++b) {
        const int64_t real = from + valid_steps(task.lengths, b, T);
        sum += sum_rows(task, max(begin, from), min(end, real), at.column);
      }
      task.sums[at.row * task.channels + at.column] = sum;
    });
  }
};

/// The last stage of the gradient of shared logits [H, K]: a block for a head
/// takes sums [H, K] with respect to its taps (or already to logits).
template <class S>
struct WeightTask {
  TapSource taps;
  bool is_logit = false;
  const float* sums = nullptr;
  void* grad_logits = nullptr;

  /// Shared memory: a row of gradients and one of logits; the statistic.
  SEQCONV_HD int64_t row_bytes() const {
    return logit_pitch(taps.kernel_size) * static_cast<int64_t>(sizeof(float));
  }
  SEQCONV_HD int64_t shared() const {
    return 2 * row_bytes() + static_cast<int64_t>(sizeof(RowStats));
  }
};

struct WeightBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const WeightTask<S>& task) {
    const int K = task.taps.kernel_size;
    const int64_t base = block.index() * K, bytes = task.row_bytes();
    float* const grads = shared_at<float>(block.shared(), 0);
    const LogitRows logits = {
        shared_at<float>(block.shared(), bytes),
        logit_pitch(K),
        1};
    auto* const stats = shared_at<RowStats>(block.shared(), 2 * bytes);
    block.each([&](int thread) {
      for (int j = thread; j < K; j += kThreads)
        grads[j] = task.sums[base + j];
    });
    if (!task.is_logit) {
      const auto row_of = [&](int, bool) { return TapRow{base, 0, K}; };
      make_taps<S>(
          block,
          task.taps,
          1,
          row_of,
          logits,
          stats,
          [](int, int, const float(&)[kTapGroup]) {});
      taps_backward<S>(
          block,
          task.taps,
          1,
          row_of,
          [&](int) { return stats[0]; },
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
};

}  // namespace seqconv::kernels::cuda
