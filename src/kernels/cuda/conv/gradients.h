#pragma once

#include "kernels/cuda/conv/tile.h"

/// From the gradients of a block's taps to those of its logits, or to their
/// sums over positions: what FMA and tensor cores share.
namespace seqconv::kernels::cuda {

/// Gradients of a tile's taps in shared memory -> of its logits: written
/// to task.grad_logits, or left where they were for a sum over positions.
template <bool kManyHeads, class S, class Block>
SEQCONV_DEVICE void
finish_tap_rows(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  const ConvPlan& plan = task.plan;
  const int before = task.taps.kernel_size - 1;  // more rows of statistics
  const int after = before - task.taps.padding_left;
  float* const grads = shared_at<float>(block.shared(), plan.grads_at);
  const auto* const stats = shared_at<RowStats>(block.shared(), plan.stats_at);
  const int rows = plan.rows, count = tile.heads * rows;
  const TileRows<true, kManyHeads, S> row_of(task, tile, tile.first, rows);
  taps_backward<S>(
      block,
      task.taps,
      count,
      row_of,
      [&](int i) { return stats[row_of.head_of(i) * before + after + i]; },
      logit_rows(block.shared(), task),
      grads,
      plan.grad_pitch);
  if (task.sums != nullptr)
    return;
  const int here =
      static_cast<int>(min<int64_t>(rows, task.steps - tile.first));
  write_rows<S>(
      block,
      task.taps,
      count,
      grads,
      plan.grad_pitch,
      task.grad_logits,
      [&](int i) {
        const int head = row_of.head_of(i), r = i - head * rows;
        return r < here ? row_of.base_of(head, r) : int64_t{-1};
      });
}

/// One phase: the block's sums over positions, [units, H, K] of task.sums.
template <class S, class Block>
SEQCONV_DEVICE void sum_tap_rows(
    Block& block,
    const ConvTask<S>& task,
    const ConvTiles<S>& tiles,
    const ConvTile& tile) {
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const float* const grads = shared_at<float>(block.shared(), plan.grads_at);
  float* const to = task.sums + (tiles.unit * task.all_heads + tile.head) * K;
  block.each([&](int thread) {
    for (int n = thread; n < tile.heads * K; n += kThreads) {
      float sum = 0;
      for (int r = 0; r < plan.grad_rows; ++r)
        sum += grads[(n / K * plan.grad_rows + r) * plan.grad_pitch + n % K];
      to[n] = sum;
    }
  });
}

}  // namespace seqconv::kernels::cuda
