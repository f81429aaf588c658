#pragma once

#include "kernels/cuda/talk/tile.h"

/// The gradients of TaLK's offsets: products of grad_y and the rows of x at the
/// edges of windows.
namespace seqconv::internal::kernels::cuda {

/// Part of a phase: sums over channels of x[edge row] * grad_y[t].
template <int V, class S>
SEQCONV_DEVICE void add_products(
    const S* const (&rows)[3],  ///< x at the left edge, the right, grad_y
    int begin,
    int end,
    int step,
    float (&sums)[2]) {
  struct Packs {
    Pack<S, V> of[3];
  };
  load_ahead<2>(
      begin,
      end,
      step,
      [&](int c) {
        Packs in = {};
        if (c < end)
          unroll<3>([&](int k) { in.of[k] = load_pack<S, V>(rows[k] + c); });
        return in;
      },
      [&](int, const Packs& in) {
        float left[V], right[V], g[V];
        widen_pack<V>(in.of[0], left);
        widen_pack<V>(in.of[1], right);
        widen_pack<V>(in.of[2], g);
        unroll<V>([&](int v) {
          sums[0] += left[v] * g[v];
          sums[1] += right[v] * g[v];
        });
      });
}

/// Two phases: the windows of the tile's own positions, then the edge products
/// of a chunk, added to `edges` (or written, `fresh`): 2^edge_bits lanes for a
/// row of a head.
template <int V, class S, class Block>
SEQCONV_DEVICE void edge_products(
    Block& block, const TalkTask<S>& task, const TalkTile& tile, const Chunk& chunk, bool fresh) {
  const int real = tile.real(task), bits = task.plan.edge_bits;
  const int lanes = 1 << bits, at_once = kWarp >> bits;
  const TalkMemory memory(task.plan, block.shared());
  block.each([&](int thread) {
    each_window(task, tile, tile.first, real, thread, [&](int n, int, const TalkWindow& w) {
      memory.windows[n] = w;
    });
  });
  const int64_t at = task.element(tile.b, 0, chunk.first);
  const int channels = tile.heads > 1 ? task.head_channels : chunk.width;
  const Divisor by_heads(tile.heads);
  block.warps([&](auto& warp) {
    for (int n0 = warp.index() * at_once; n0 < real * tile.heads; n0 += kWarps * at_once) {
      Lanes<float> left, right;
      warp.each([&](int lane) {
        const int n = n0 + (lane >> bits), part = lane & (lanes - 1);
        float sums[2] = {};
        if (n < real * tile.heads) {
          const int r = by_heads.quotient(n), h = n - r * tile.heads;
          const TalkWindow w = memory.windows[n];
          add_products<V>(
              {row_at(task.x + at, w.left_row(), task.row_bytes),
               row_at(task.x + at, w.right_row(), task.row_bytes),
               row_at(task.grad_y + at, tile.first + r, task.row_bytes)},
              h * channels + part * V,
              (h + 1) * channels,
              lanes * V,
              sums);
        }
        left[lane] = sums[0];
        right[lane] = sums[1];
      });
      join_lanes<3>(warp, left, bits, AddFloats{});
      join_lanes<3>(warp, right, bits, AddFloats{});
      warp.each([&](int lane) {
        const int n = n0 + (lane >> bits);
        if ((lane & (lanes - 1)) != 0 || n >= real * tile.heads)
          return;
        float* const to = memory.edges + 2 * n;
        to[0] = fresh ? left[lane] : to[0] + left[lane];
        to[1] = fresh ? right[lane] : to[1] + right[lane];
      });
    }
  });
}

/// One phase: d out / d left = max_left * x[edge] / window where the edge
/// has a share, else 0; on the right likewise.
template <class S, class Block>
SEQCONV_DEVICE void write_offset_gradients(
    Block& block, const TalkTask<S>& task, const TalkTile& tile) {
  const int rows = tile.rows(task), real = tile.real(task);
  const TalkMemory memory(task.plan, block.shared());
  block.each([&](int thread) {
    with_storage<S>(task.offsets.storage, [&](auto type) {
      using O = decltype(type);
      for (int n = thread; n < rows * tile.heads; n += kThreads) {
        const int h = n % tile.heads, r = n / tile.heads;
        float left = 0, right = 0;
        if (r < real) {
          const TalkWindow w = memory.windows[n];
          if (w.left != 0)
            left = memory.edges[2 * n] * task.max_left * task.scale;
          if (w.right != 0)
            right = memory.edges[2 * n + 1] * task.max_right * task.scale;
        }
        const int64_t i = (tile.b * task.steps + tile.first + r) * task.all_heads + tile.head + h;
        if (task.grad_left != nullptr)
          static_cast<O*>(task.grad_left)[i] = narrow<O>(left);
        if (task.grad_right != nullptr)
          static_cast<O*>(task.grad_right)[i] = narrow<O>(right);
      }
    });
  });
}

}  // namespace seqconv::internal::kernels::cuda
