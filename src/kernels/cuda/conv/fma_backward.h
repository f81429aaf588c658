#pragma once

#include "kernels/cuda/conv/fma.h"
#include "kernels/cuda/conv/gradients.h"

/// The gradients of both convolutions by fused multiply-adds.
namespace seqconv::kernels::cuda {

/// The taps of the gradient of x: input s feeds the outputs
/// s - (K-1-P) + i through tap K-1-i. Statistics are those of positions
/// first - (K-1-P) on, or of the heads.
template <bool kPerRow, class S, class Block>
SEQCONV_DEVICE void make_backward_taps(
    Block& block,
    const ConvTask<S>& task,
    const ConvTile& tile) {
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const int64_t first = tile.first - (K - 1 - task.taps.padding_left);
  const int rows = kPerRow ? plan.rows + K - 1 : 1;
  const TileRows<kPerRow, true, S> row_of(task, tile, first, rows);
  float* const taps = shared_at<float>(block.shared(), plan.taps_at);
  make_taps<S>(
      block,
      task.taps,
      tile.heads * rows,
      row_of,
      logit_rows(block.shared(), task),
      shared_at<RowStats>(block.shared(), plan.stats_at),
      [&](int i, int j0, const float(&w)[kTapGroup]) {
        const int head = row_of.head_of(i), r = i - head * rows;
        unroll<kTapGroup>([&](int e) {
          const int j = j0 + e, s = kPerRow ? r - (K - 1) + j : 0;
          if (j < K && s >= 0 && s < plan.rows)
            taps
                [(kPerRow ? head * plan.rows + s : i) * plan.tap_pitch + K - 1 -
                 j] = w[e];
        });
      });
}

/// One phase: gradients of taps, sum over the chunk's channels of
/// x[r + j] * grad_y[r], added to `grads` (or written, `fresh`). 2^split_bits
/// lanes share a row and eight of its taps; where only the sum over rows is
/// wanted, a warp takes eight taps, each lane a row.
template <bool kPerRow, int V, class S, class Block>
SEQCONV_DEVICE void tap_gradients(
    Block& block,
    const ConvTask<S>& task,
    const ConvTile& tile,
    const Chunk& chunk,
    bool fresh,
    const S* x,
    const S* grad_y) {
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const int columns = (tile.heads > 1 ? task.head_channels : chunk.width) / V;
  const int sets = tile.heads * plan.grad_rows;
  const int units = sets * chunks_of(K, 8);
  const int bits = kPerRow ? plan.split_bits : 5, lanes = 1 << bits;
  float* const grads = shared_at<float>(block.shared(), plan.grads_at);
  block.warps([&](auto& warp) {
    for (int n0 = warp.index() * kWarp; n0 < units << bits; n0 += kThreads) {
      Lanes<float> sums[8];
      warp.each([&](int lane) {
        unroll<8>([&](int j) { sums[j][lane] = 0; });
        const int unit = (n0 + lane) >> bits, part = lane & (lanes - 1);
        const int set = unit % sets, j0 = unit / sets * 8;
        const int head = set / plan.grad_rows;
        int r = set % plan.grad_rows;
        if (!kPerRow)
          r = r * kWarp + part;
        if (unit >= units || r >= plan.rows)
          return;
        const int begin = head * columns * V;
        const S* const rows = x + (r + j0) * plan.pitch + begin;
        const S* const g = grad_y + r * plan.pitch + begin;
        for (int c = kPerRow ? part : 0; c < columns;
             c += kPerRow ? lanes : 1) {
          float dy[V];
          load_wide<V>(g + c * V, dy);
          unroll<8>([&](int j) {
            if (j0 + j < K) {
              float in[V];
              load_wide<V>(rows + j * plan.pitch + c * V, in);
              unroll<V>([&](int v) { sums[j][lane] += in[v] * dy[v]; });
            }
          });
        }
      });
      unroll<8>([&](int j) {
        join_lanes<kPerRow ? 2 : 5>(warp, sums[j], bits, AddFloats{});
      });
      warp.each([&](int lane) {
        const int unit = (n0 + lane) >> bits;
        if (unit >= units || (lane & (lanes - 1)) != 0)
          return;
        const int j0 = unit / sets * 8;
        float* const to = grads + unit % sets * plan.grad_pitch + j0;
        unroll<8>([&](int j) {
          if (j0 + j < K)
            to[j] = fresh ? sums[j][lane] : to[j] + sums[j][lane];
        });
      });
    }
  });
}

/// grad_x and the gradient of the logits of the block's tiles, those that are
/// wanted. Taps are made again, with those of the K-1 positions around that its
/// inputs also feed.
template <bool kPerRow, int V>
struct BackwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    const ConvPlan& plan = task.plan;
    const ConvTiles<S> tiles(task, block.index());
    const int after = task.taps.kernel_size - 1 - task.taps.padding_left;
    const float* const taps = shared_at<float>(block.shared(), plan.taps_at);
    S* const x = shared_at<S>(block.shared(), plan.x_at);
    S* const grad_y = shared_at<S>(block.shared(), plan.y_at);
    ConvTile tile;
    for (int64_t n = tiles.begin; n < tiles.end; ++n) {
      tile = tiles.tile(n);
      if (kPerRow || n == tiles.begin)
        make_backward_taps<kPerRow>(block, task, tile);
      for (int c = 0; c < chunks_of(task, tile); ++c) {
        const Chunk chunk = chunk_of(task, tile, c);
        const auto stage = [&](const S* tensor, int64_t before, S* to) {
          stage_rows<V>(
              block,
              task,
              tensor,
              tile,
              chunk,
              tile.first - before,
              plan.in_rows,
              chunk.width,
              to);
        };
        if (task.wants_logits())
          stage(task.x, task.taps.padding_left, x);
        stage(task.grad_y, after, grad_y);
        block.each([&](int thread) {
          if (task.out != nullptr)
            convolve_chunk<kPerRow, V>(thread, task, tile, chunk, taps, grad_y);
        });
        if (task.wants_logits())
          tap_gradients<kPerRow, V>(
              block,
              task,
              tile,
              chunk,
              /*fresh=*/c == 0 && (kPerRow || n == tiles.begin),
              x,
              grad_y + after * plan.pitch);
      }
      if (kPerRow && task.wants_logits())
        finish_tap_rows</*kManyHeads=*/true>(block, task, tile);
    }
    if (task.sums != nullptr)
      sum_tap_rows(block, task, tiles, tile);
  }
};

}  // namespace seqconv::kernels::cuda
