#pragma once

#include "kernels/cuda/conv/tile.h"

/// The passes of both convolutions, the same by FMA and on tensor cores.
namespace seqconv::internal::kernels::cuda {

/// Gradients of a tile's taps in shared memory -> of its logits: written
/// to task.grad_logits, or left where they were for a sum over positions.
template <bool kManyHeads, class S, class Block>
SEQCONV_DEVICE void finish_tap_rows(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  const ConvPlan& plan = task.plan;
  const int before = task.taps.kernel_size - 1;  // more rows of statistics
  const int after = before - task.taps.padding_left;
  float* const grads = shared_at<float>(block.shared(), plan.grads_at);
  const auto* const stats = shared_at<RowStats>(block.shared(), plan.stats_at);
  const int rows = plan.rows, count = tile.heads * rows;
  const TileRows<true, kManyHeads, S> row_of(task, tile, /*reversed=*/false);
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
  const int here = tile.rows(task);
  write_rows<S>(block, task.taps, count, grads, plan.grad_pitch, task.grad_logits, [&](int i) {
    const int head = row_of.head_of(i), r = i - head * rows;
    return r < here ? row_of.base_of(head, r) : int64_t{-1};
  });
}

/// One phase: the block's sums over positions, [units, H, K] of task.sums.
template <class S, class Block>
SEQCONV_DEVICE void sum_tap_rows(
    Block& block, const ConvTask<S>& task, const ConvTiles<S>& tiles, const ConvTile& tile) {
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

/// One pass over the block's tiles: y, or the gradients of x and of the logits,
/// those that are wanted. The gradient of x is a convolution of grad_y with
/// taps that are made again, with those of the K-1 positions around that the
/// tile's inputs also feed. A Path is FmaPath or BandPath; its
///   make_taps<kReversed>(block, task, tile)
/// makes the taps of a tile,
///   convolve(block, task, tile, chunk, in, sums) and
///   store(block, task, tile, chunk, sums, staging)
/// outputs of a chunk from staged rows, and
///   tap_gradients(block, task, tile, chunk, fresh, x, grad_y)
/// adds a chunk's gradients of taps to those in shared memory (or writes them,
/// `fresh`); all are phases.
template <class Path, bool kBackward>
struct ConvBody {
  static constexpr int kMinBlocks = Path::min_blocks(kBackward);
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    constexpr bool kPerRow = Path::kPerRow;
    const ConvPlan& plan = task.plan;
    const ConvTiles<S> tiles(task, block.index());
    const int P = task.taps.padding_left, K = task.taps.kernel_size;
    const int before = kBackward ? K - 1 - P : P;
    S* const x = shared_at<S>(block.shared(), plan.x_at);
    S* const in = kBackward ? shared_at<S>(block.shared(), plan.y_at) : x;
    typename Block::template Fragments<typename Path::Sums> sums(block);
    ConvTile tile;
    for (int64_t n = tiles.begin; n < tiles.end; ++n) {
      tile = tiles.tile(n);
      if (kPerRow || n == tiles.begin)
        Path::template make_taps<kBackward>(block, task, tile);
      for (int c = 0; c < plan.chunks; ++c) {
        const Chunk chunk(task, tile, c);
        const auto stage = [&](const S* tensor, int rows_before, S* to) {
          stage_rows<Path>(block, task, tensor, tile, chunk, rows_before, to);
        };
        if (kBackward && task.wants_logits())
          stage(task.x, P, x);
        stage(kBackward ? task.grad_y : task.x, before, in);
        if (!kBackward || task.out != nullptr)
          Path::convolve(block, task, tile, chunk, in, sums);
        if (kBackward && task.wants_logits())
          Path::tap_gradients(
              block,
              task,
              tile,
              chunk,
              /*fresh=*/c == 0 && (kPerRow || n == tiles.begin),
              x,
              in + before * plan.pitch);
        if (!kBackward || task.out != nullptr)
          Path::store(block, task, tile, chunk, sums, x);
      }
      if (kBackward && kPerRow && task.wants_logits())
        finish_tap_rows<Path::kManyHeads>(block, task, tile);
    }
    if (kBackward && task.sums != nullptr)
      sum_tap_rows(block, task, tiles, tile);
  }
};

}  // namespace seqconv::internal::kernels::cuda
