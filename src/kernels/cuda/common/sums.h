#pragma once

#include "kernels/cuda/common/launches.h"

/// Sums over rows, in an order fixed by the sizes.
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

/// Elements of what sums of `count` rows leave stage by stage.
inline int64_t sum_elements(int64_t count, int64_t width) {
  const int64_t left = sum_outputs(count);
  return left * width + (left > 1 ? sum_elements(left, width) : 0);
}

/// Sums by stages, one behind the other in `workspace`; the last one goes to
/// `last` unless that is null. Gives where it is.
template <class R, class Launcher>
const float* launch_sums(Launcher& launcher, SumTask<R> task, float* workspace, float* last) {
  const int64_t left = sum_outputs(task.count), width = task.width;
  task.to = left == 1 && last != nullptr ? last : workspace;
  launcher.template run<SumBody>(left * blocks_for(width), 0, task);
  if (left == 1)
    return task.to;
  const SumTask<float> next = {task.to, left, width, left};
  return launch_sums(launcher, next, workspace + left * width, last);
}

}  // namespace seqconv::internal::kernels::cuda
