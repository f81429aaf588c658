#pragma once

#include "kernels/cuda/conv_tile.h"

/// Both convolutions by fused multiply-adds, for any storage type and kernel
/// width that fits: a thread owns eight positions of V neighbouring channels
/// and lets x slide through its registers.
namespace seqconv::kernels::cuda {

/// The logits of a tile's outputs, one for each position or one a head; of one
/// head only unless kManyHeads.
template <bool kPerRow, bool kManyHeads, class S>
struct TileRows {
  const TapSource& taps;
  int64_t first;  ///< position of row 0
  int64_t valid;
  int64_t base;   ///< of the first head, row 0
  Divisor heads;  ///< by the rows of one
  int rows;
  int begin;  ///< the real ones
  int end;

  SEQCONV_DEVICE
  TileRows(const ConvTask<S>& task, const ConvTile& tile, int64_t at, int count)
      : taps(task.taps),
        first(at),
        valid(tile.valid),
        base(task.taps.row(tile.b, at, tile.head)),
        heads(count),
        rows(count),
        begin(static_cast<int>(clamped<int64_t>(-at, 0, count))),
        end(static_cast<int>(clamped<int64_t>(tile.valid - at, 0, count))) {
    if (!kPerRow)
      base = static_cast<int64_t>(tile.head) * taps.kernel_size;
  }

  SEQCONV_DEVICE int head_of(int i) const {
    return kManyHeads ? heads.quotient(i) : 0;
  }
  SEQCONV_DEVICE int64_t base_of(int head, int r) const {
    return base + offset_of(r, taps.step_stride) +
        offset_of(head, taps.kernel_size);
  }
  /// Row i: head i / rows, position first + i % rows.
  SEQCONV_DEVICE TapRow operator()(int i, bool edges) const {
    if (!kPerRow)
      return {base + i * taps.kernel_size, 0, taps.kernel_size};
    const int head = head_of(i), r = i - head * rows;
    if (edges && taps.renormalize_edges)
      return tap_row(taps, base_of(head, r), first + r, valid);
    return {base_of(head, r), 0, r >= begin && r < end ? taps.kernel_size : 0};
  }
};

template <bool kPerRow, class S, class Block>
SEQCONV_DEVICE void
make_forward_taps(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int rows = kPerRow ? plan.rows : 1, count = tile.heads * rows;
  A* const taps = shared_at<A>(block.shared(), plan.taps_at);
  make_taps<S>(
      block,
      task.taps,
      count,
      TileRows<kPerRow, true, S>(task, tile, tile.first, rows),
      LogitRows<A>{taps, plan.tap_pitch, count},
      nullptr,
      [&](int i, int j, const A(&w)[kTapGroup]) {
        store_narrow<kTapGroup>(taps + i * plan.tap_pitch + j, w);
      });
}

/// y of the block's tiles.
template <bool kPerRow, int V, class S, class Block>
SEQCONV_DEVICE void conv_forward_body(Block& block, const ConvTask<S>& task) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const ConvTiles<S> tiles(task, block.index());
  const A* const taps = shared_at<A>(block.shared(), plan.taps_at);
  S* const x = shared_at<S>(block.shared(), plan.x_at);
  for (int64_t n = tiles.begin; n < tiles.end; ++n) {
    const ConvTile tile = tiles.tile(n);
    if (kPerRow || n == tiles.begin)
      make_forward_taps<kPerRow>(block, task, tile);
    for (int c = 0; c < chunks_of(task, tile); ++c) {
      const Chunk chunk = chunk_of(task, tile, c);
      stage_rows<V>(
          block,
          task,
          task.x,
          tile,
          chunk,
          tile.first - task.taps.padding_left,
          plan.in_rows,
          chunk.width,
          x);
      block.each([&](int thread) {
        convolve_chunk<kPerRow, V>(
            thread,
            block.threads(),
            task,
            tile,
            chunk,
            taps,
            x);
      });
    }
  }
}

/// The taps of the gradient of x: input s feeds the outputs
/// s - (K-1-P) + i through tap K-1-i. Statistics are those of positions
/// first - (K-1-P) on, or of the heads.
template <bool kPerRow, class S, class Block>
SEQCONV_DEVICE void make_backward_taps(
    Block& block,
    const ConvTask<S>& task,
    const ConvTile& tile) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const int64_t first = tile.first - (K - 1 - task.taps.padding_left);
  const int rows = kPerRow ? plan.rows + K - 1 : 1;
  const TileRows<kPerRow, true, S> row_of(task, tile, first, rows);
  A* const taps = shared_at<A>(block.shared(), plan.taps_at);
  make_taps<S>(
      block,
      task.taps,
      tile.heads * rows,
      row_of,
      logit_rows(block.shared(), task),
      shared_at<RowStats<A>>(block.shared(), plan.stats_at),
      [&](int i, int j0, const A(&w)[kTapGroup]) {
        const int head = row_of.head_of(i), r = i - head * rows;
        SEQCONV_UNROLL
        for (int e = 0; e < kTapGroup; ++e) {
          const int j = j0 + e, s = kPerRow ? r - (K - 1) + j : 0;
          if (j < K && s >= 0 && s < plan.rows)
            taps
                [(kPerRow ? head * plan.rows + s : i) * plan.tap_pitch + K - 1 -
                 j] = w[e];
        }
      });
}

/// Part of a phase: gradients of taps, sum over the chunk's channels of
/// x[r + j] * grad_y[r], added to `grads` (or written, `fresh`).
template <int V, class S>
SEQCONV_DEVICE void tap_gradients(
    int thread,
    int threads,
    const ConvTask<S>& task,
    const ConvTile& tile,
    const Chunk& chunk,
    bool fresh,
    const S* x,
    const S* grad_y,
    AccumulatorOf<S>* grads) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const int columns = (tile.heads > 1 ? task.head_channels : chunk.width) / V;
  const int sets = tile.heads * plan.rows;
  for (int n = thread; n < plan.splits * sets * chunks_of(K, 8); n += threads) {
    const int set = n % sets, r = set % plan.rows, head = set / plan.rows;
    const int split = n / sets % plan.splits, j0 = n / sets / plan.splits * 8;
    A sums[8] = {};
    const int begin = head * columns * V;
    const S* const rows = x + (r + j0) * plan.pitch + begin;
    const S* const g = grad_y + r * plan.pitch + begin;
    for (int c = split; c < columns; c += plan.splits) {
      A dy[V];
      load_wide<V>(g + c * V, dy);
      SEQCONV_UNROLL
      for (int j = 0; j < 8; ++j)
        if (j0 + j < K) {
          A in[V];
          load_wide<V>(rows + j * plan.pitch + c * V, in);
          SEQCONV_UNROLL
          for (int v = 0; v < V; ++v)
            sums[j] += in[v] * dy[v];
        }
    }
    A* const to =
        grads + (split * plan.heads * plan.rows + set) * plan.grad_pitch + j0;
    SEQCONV_UNROLL
    for (int j = 0; j < 8; ++j)
      if (j0 + j < K)
        to[j] = fresh ? sums[j] : to[j] + sums[j];
  }
}

/// One phase: splits of the tap gradients are added up into the first.
template <class S, class Block>
SEQCONV_DEVICE void
join_splits(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size, sets = tile.heads * plan.rows;
  A* const grads = shared_at<A>(block.shared(), plan.grads_at);
  block.each([&](int thread) {
    for (int n = thread; n < sets * K; n += block.threads()) {
      A& to = grads[n / K * plan.grad_pitch + n % K];
      for (int split = 1; split < plan.splits; ++split)
        to += grads
            [(split * plan.heads * plan.rows + n / K) * plan.grad_pitch +
             n % K];
    }
  });
}

/// Gradients of a tile's taps in shared memory -> of its logits: written
/// to task.grad_logits, or left where they were for a sum over positions.
template <bool kManyHeads, class S, class Block>
SEQCONV_DEVICE void
finish_tap_rows(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int before = task.taps.kernel_size - 1;  // more rows of statistics
  const int after = before - task.taps.padding_left;
  A* const grads = shared_at<A>(block.shared(), plan.grads_at);
  const auto* const stats =
      shared_at<RowStats<A>>(block.shared(), plan.stats_at);
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
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size;
  const A* const grads = shared_at<A>(block.shared(), plan.grads_at);
  A* const to = task.sums + (tiles.unit * task.all_heads + tile.head) * K;
  block.each([&](int thread) {
    for (int n = thread; n < tile.heads * K; n += block.threads()) {
      A sum = 0;
      for (int r = 0; r < plan.rows; ++r)
        sum += grads[(n / K * plan.rows + r) * plan.grad_pitch + n % K];
      to[n] = sum;
    }
  });
}

/// grad_x and the gradient of the logits of the block's tiles, those that are
/// wanted. Taps are made again, with those of the K-1 positions around that its
/// inputs also feed.
template <bool kPerRow, int V, class S, class Block>
SEQCONV_DEVICE void conv_backward_body(Block& block, const ConvTask<S>& task) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const ConvTiles<S> tiles(task, block.index());
  const int after = task.taps.kernel_size - 1 - task.taps.padding_left;
  const A* const taps = shared_at<A>(block.shared(), plan.taps_at);
  A* const grads = shared_at<A>(block.shared(), plan.grads_at);
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
          convolve_chunk<kPerRow, V>(
              thread,
              block.threads(),
              task,
              tile,
              chunk,
              taps,
              grad_y);
        if (task.wants_logits())
          tap_gradients<V>(
              thread,
              block.threads(),
              task,
              tile,
              chunk,
              /*fresh=*/c == 0 && (kPerRow || n == tiles.begin),
              x,
              grad_y + after * plan.pitch,
              grads);
      });
    }
    if (kPerRow && task.wants_logits()) {
      join_splits(block, task, tile);
      finish_tap_rows</*kManyHeads=*/true>(block, task, tile);
    }
  }
  if (!kPerRow && task.wants_logits())
    join_splits(block, task, tile);
  if (task.sums != nullptr)
    sum_tap_rows(block, task, tiles, tile);
}

}  // namespace seqconv::kernels::cuda
