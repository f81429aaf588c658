#pragma once

#include "kernels/cuda/talk_plan.h"

/// The gradients of TaLK's offsets: products of grad_y and the rows of x at the
/// edges of windows.
namespace seqconv::kernels::cuda {

/// Part of a phase: sums over channels of x[edge row] * grad_y[t].
template <int V, class S>
SEQCONV_DEVICE void add_edges(
    const S* const (&rows)[3],  ///< x at the left edge, the right, grad_y
    int begin,
    int end,
    int step,
    AccumulatorOf<S> (&sums)[2]) {
  using A = AccumulatorOf<S>;
  constexpr int kAtOnce = 2;
  SEQCONV_NO_UNROLL
  for (int c0 = begin; c0 < end; c0 += kAtOnce * step) {
    Pack<S, V> in[kAtOnce][3] = {};
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      if (c0 + i * step < end) {
        SEQCONV_UNROLL
        for (int k = 0; k < 3; ++k)
          in[i][k] = load_pack<S, V>(rows[k] + c0 + i * step);
      }
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      A left[V], right[V], g[V];
      widen_pack<V>(in[i][0], left);
      widen_pack<V>(in[i][1], right);
      widen_pack<V>(in[i][2], g);
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v) {
        sums[0] += left[v] * g[v];
        sums[1] += right[v] * g[v];
      }
    }
  }
}

/// One phase: the windows of the tile's own positions.
template <class S, class Block>
SEQCONV_DEVICE void
make_windows(Block& block, const TalkTask<S>& task, const TalkTile& tile) {
  const TalkMemory<S> memory(task, block.shared());
  const TalkRange range = tile.own_positions();
  block.each([&](int thread) {
    each_window<1>(
        task,
        range,
        thread,
        block.threads(),
        [&](int h, int r, const auto& w) {
          memory.windows[r * range.heads + h] = w;
        });
  });
}

/// One phase: the edge products of a chunk, added to edges [tile, heads, 2]:
/// eight threads for a row where a block has one head, else one for a row of a
/// head.
template <int V, class S, class Block>
SEQCONV_DEVICE void edge_products(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    bool fresh) {
  using A = AccumulatorOf<S>;
  const int real = tile.real(), R = task.head_channels;
  const TalkMemory<S> memory(task, block.shared());
  A* const edges = shared_at<A>(block.shared(), task.plan.edges_at);
  const int64_t at = tile.b * task.steps * task.channels + chunk.first;
  const auto add = [&](int n, int r, int begin, int end, int step, A(&s)[2]) {
    const TalkWindow<A> w = memory.windows[n];
    add_edges<V>(
        {row_at(task.x + at, w.left_row(), task.row_bytes),
         row_at(task.x + at, w.right_row(), task.row_bytes),
         row_at(task.grad_y + at, tile.first + r, task.row_bytes)},
        begin,
        end,
        step,
        s);
  };
  const auto put = [&](int n, A left, A right) {
    edges[2 * n] = fresh ? left : edges[2 * n] + left;
    edges[2 * n + 1] = fresh ? right : edges[2 * n + 1] + right;
  };
  if (tile.heads > 1) {
    block.each([&](int thread) {
      for (int n = thread; n < real * tile.heads; n += block.threads()) {
        const int r = n / tile.heads, h = n - r * tile.heads;
        A sums[2] = {};
        add(n, r, h * R, (h + 1) * R, V, sums);
        put(n, sums[0], sums[1]);
      }
    });
    return;
  }
  constexpr int kLanes = 8, kRows = kWarp / kLanes;
  const int stride = block.threads() / kLanes;
  block.warps([&](auto& warp) {
    for (int r0 = warp.index() * kRows; r0 < real; r0 += stride) {
      Lanes<A> left, right;
      warp.each([&](int lane) {
        const int r = r0 + lane / kLanes;
        A sums[2] = {};
        if (r < real)
          add(r, r, lane % kLanes * V, chunk.width, kLanes * V, sums);
        left[lane] = sums[0];
        right[lane] = sums[1];
      });
      sum_groups<kLanes>(warp, left);
      sum_groups<kLanes>(warp, right);
      warp.each([&](int lane) {
        const int r = r0 + lane / kLanes;
        if (lane % kLanes == 0 && r < real)
          put(r, left[lane], right[lane]);
      });
    }
  });
}

/// One phase: d out / d left = max_left * x[edge] / window where the edge
/// has a share, else 0; on the right likewise.
template <class S, class Block>
SEQCONV_DEVICE void write_offset_gradients(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile) {
  using A = AccumulatorOf<S>;
  const int real = tile.real();
  const auto* const windows =
      shared_at<TalkWindow<A>>(block.shared(), task.plan.windows_at);
  const A* const edges = shared_at<A>(block.shared(), task.plan.edges_at);
  block.each([&](int thread) {
    for (int n = thread; n < tile.rows * tile.heads; n += block.threads()) {
      const int h = n % tile.heads, r = n / tile.heads;
      A left = 0, right = 0;
      if (r < real) {
        const TalkWindow<A> w = windows[n];
        if (w.left != 0)
          left = edges[2 * n] * task.max_left * task.scale;
        if (w.right != 0)
          right = edges[2 * n + 1] * task.max_right * task.scale;
      }
      const int64_t i =
          (tile.b * task.steps + tile.first + r) * task.all_heads + tile.head +
          h;
      if (task.grad_left != nullptr)
        store_stored(task.grad_left, task.offsets.storage, i, left);
      if (task.grad_right != nullptr)
        store_stored(task.grad_right, task.offsets.storage, i, right);
    }
  });
}

}  // namespace seqconv::kernels::cuda
