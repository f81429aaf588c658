#pragma once

#include "kernels/cuda/conv/normalize.h"

/// The last stage of the gradient of shared logits.
namespace seqconv::internal::kernels::cuda {

/// A block for a head takes sums [H, K] with respect to its taps (or already to logits).
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
