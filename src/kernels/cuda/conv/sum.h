#pragma once

#include "kernels/cuda/conv/normalize.h"

/// Sums over rows and of partial results, in an order fixed by the sizes.
namespace seqconv::internal::kernels::cuda {

/// Rows that one thread adds up.
inline constexpr int64_t kSumRows = 64;

/// Rows left when `count` are summed: of none, one of zeros.
SEQCONV_HD int64_t sum_outputs(int64_t count) {
  return max<int64_t>(1, chunks_of(count, kSumRows));
}

/// to [sum_outputs(count), width] = sums of from [count, width] over the real
/// rows of sequences of `steps` (not 0).
template <class R>
struct SumTask {
  const R* from = nullptr;
  int64_t count = 0;
  int64_t width = 0;
  int64_t steps = 1;
  const int64_t* lengths = nullptr;  ///< null: all rows are real
  float* to = nullptr;
};

/// A thread for a column of kSumRows rows.
struct SumBody {
  template <class Block, class R>
  static SEQCONV_DEVICE void run(Block& block, const SumTask<R>& task) {
    const int64_t width = task.width, T = task.steps;
    const int64_t columns = chunks_of<int64_t>(width, kThreads);
    const int64_t row = block.index() / columns, begin = row * kSumRows;
    const int64_t end = min(begin + kSumRows, task.count);
    block.each([&](int thread) {
      const int64_t c = (block.index() - row * columns) * kThreads + thread;
      if (c >= width)
        return;
      // Real rows of one sequence after the other.
      float sum = 0;
      int64_t b = begin / T;
      for (int64_t first = b * T; first < end; first += T, ++b) {
        const int64_t from = max(begin, first);
        const int64_t real = first + valid_steps(task.lengths, b, T);
        const int count = static_cast<int>(min(end, real) - from);
        load_ahead<8>(
            0,
            count,
            1,
            [&](int i) { return i < count ? widen(task.from[(from + i) * width + c]) : 0.0f; },
            [&](int, float value) { sum += value; });
      }
      task.to[row * width + c] = sum;
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
    const LogitRows logits = {shared_at<float>(block.shared(), bytes), logit_pitch(K), 1};
    auto* const stats = shared_at<RowStats>(block.shared(), 2 * bytes);
    block.each([&](int thread) {
      for (int j = thread; j < K; j += kThreads)
        grads[j] = task.sums[base + j];
    });
    if (!task.is_logit) {
      const auto row_of = [&](int, bool) { return TapRow{base, 0, K}; };
      make_taps<S>(
          block, task.taps, 1, row_of, logits, stats, [](int, int, const float(&)[kTapGroup]) {});
      taps_backward<S>(
          block, task.taps, 1, row_of, [&](int) { return stats[0]; }, logits, grads, logits.pitch);
    }
    write_rows<S>(
        block, task.taps, 1, grads, logits.pitch, task.grad_logits, [&](int) { return base; });
  }
};

}  // namespace seqconv::internal::kernels::cuda
