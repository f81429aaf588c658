#pragma once

#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/talk_plan.h"

/// TaLK backward: a block owns a tile of grad_x and looks at all windows that
/// reach into it. A thread owns a column of a difference array, so that
/// nothing is shared and nothing atomic.
namespace seqconv::kernels::cuda {

/// How far the windows of a tile reach from their positions: [B, tiles, H, 2].
/// A block for every tile; heads 32 at a time, as many threads to each as there
/// are.
template <class S, class Block>
SEQCONV_DEVICE void talk_reach_body(Block& block, const TalkTask<S>& task) {
  const TalkTile tile(task, block.index());
  auto* const spans = shared_at<TalkSpan>(block.shared(), 0);
  TalkRange range = tile.own_positions();
  for (; range.head < task.all_heads; range.head += range.heads) {
    range.heads = least(kWarp, task.all_heads - range.head);
    block.each([&](int thread) {
      TalkSpan reach = {0, 0};  // relative to the position
      each_window<4>(
          task,
          range,
          thread,
          block.threads(),
          [&](int, int r, const auto& w) {
            TalkSpan span;
            span.add(w);
            reach.add(span.begin - range.first - r, span.end - range.first - r);
          });
      spans[thread] = reach;
    });
    block.each([&](int thread) {
      if (thread >= range.heads)
        return;
      TalkSpan reach = spans[thread];
      const int lanes = block.threads() / range.heads;
      for (int lane = 1; lane < lanes; ++lane)
        reach.add(
            spans[lane * range.heads + thread].begin,
            spans[lane * range.heads + thread].end);
      int32_t* const to = task.reach +
          ((tile.b * task.plan.tiles + tile.tile) * task.all_heads +
           range.head + thread) *
              2;
      to[0] = -reach.begin;
      to[1] = reach.end;
    });
  }
}

/// One phase: positions [begin, end) whose windows may reach into the tile.
template <class S, class Block>
SEQCONV_DEVICE TalkSpan
find_neighbours(Block& block, const TalkTask<S>& task, const TalkTile& tile) {
  const int64_t tiles = task.plan.tiles;
  return join_spans(
      block,
      shared_at<TalkSpan>(block.shared(), task.plan.spans_at),
      [&](int thread) {
        TalkSpan mine;
        for (int64_t n = thread; n < tiles * tile.heads; n += block.threads()) {
          const int64_t k = n / tile.heads;
          const int64_t pair = ((tile.b * tiles + k) * task.all_heads +
                                tile.head + n % tile.heads) *
              2;
          const int first = static_cast<int>(k) * kTalkTile;
          const int from = most(first, tile.first - task.reach[pair + 1] + 1);
          const int to = least(
              least(first + kTalkTile, tile.valid),
              tile.first + kTalkTile + task.reach[pair]);
          if (from < to)
            mine.add(from, to);
        }
        return mine;
      });
}

/// One phase: the windows of a range of at most kTalkTile positions.
template <class S, class Block>
SEQCONV_DEVICE void
make_windows(Block& block, const TalkTask<S>& task, const TalkRange& range) {
  const TalkMemory<S> memory(task, block.shared());
  block.each([&](int thread) {
    each_window<2>(
        task,
        range,
        thread,
        block.threads(),
        [&](int h, int r, const auto& w) {
          memory.windows[r * range.heads + h] = w;
        });
  });
}

/// Part of a phase: what one thread adds to its column for rows `lane`,
/// lane + lanes, ... of the windows: at left borders, or (`right`) at right
/// ones with the sign turned. Borders outside the tile go to its first row or
/// to the spare one behind its last.
template <class A, class S>
SEQCONV_DEVICE void scatter_borders(
    const TalkWindow<A>* windows,
    int heads,
    int count,
    int lane,
    int lanes,
    bool right,
    int origin,
    const S* grad_y,
    int64_t stride,
    A* column,
    int pitch) {
  constexpr int kAtOnce = 4;
  for (int r0 = lane; r0 < count; r0 += kAtOnce * lanes) {
    A g[kAtOnce];
    TalkWindow<A> some[kAtOnce];
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int r = r0 + i * lanes;
      g[i] = r < count ? A(widen(grad_y[r * stride])) : A(0);
      some[i] = windows[r < count ? r * heads : 0];
    }
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int r = r0 + i * lanes;
      if (r >= count)
        continue;
      const TalkWindow<A> w = some[i];
      TalkSpan span;
      span.add(w);
      if (span.end <= origin || span.begin >= origin + kTalkTile)
        continue;
      // A window turns on at its left border and off at its right one: in two
      // steps where a row has only a share.
      const int at = (right ? w.end : w.begin - 1) - origin;
      const A share = right ? w.right : w.left;
      const A first = (right ? share - A(1) : share) * g[i];
      const A second = (right ? -share : A(1) - share) * g[i];
      const int a = clamped(at, 0, kTalkTile);
      const int b = clamped(at + 1, 0, kTalkTile);
      if (a == b) {
        column[a * pitch] += first + second;
      } else {
        const A before = column[a * pitch], after = column[b * pitch];
        column[a * pitch] = before + first;
        column[b * pitch] = after + second;
      }
    }
  }
}

/// grad_x of a chunk of the tile, from the windows of `around`.
template <class S, class Block>
SEQCONV_DEVICE void input_gradient(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    const TalkSpan& around) {
  using A = AccumulatorOf<S>;
  const TalkPlan& plan = task.plan;
  const int pitch = plan.width, size = (kTalkTile + 1) * pitch;
  const int real = tile.real(), lanes = plan.copies / 2;
  A* const sums = shared_at<A>(block.shared(), plan.sums_at);
  const auto* const windows =
      shared_at<TalkWindow<A>>(block.shared(), plan.windows_at);
  block.each([&](int thread) {
    for (int n = thread; n < plan.copies * size; n += block.threads())
      sums[n] = A(0);
  });
  for (int first = around.begin; first < around.end; first += kTalkTile) {
    const int count = least(kTalkTile, around.end - first);
    TalkRange range = tile.own_positions();
    range.first = first;
    range.count = count;
    make_windows(block, task, range);
    block.each([&](int thread) {
      for (int n = thread; n < chunk.width * plan.copies;
           n += block.threads()) {
        const int c = n % chunk.width, copy = n / chunk.width;
        const int h = tile.heads > 1 ? c / task.head_channels : 0;
        scatter_borders(
            windows + h,
            tile.heads,
            count,
            copy / 2,
            lanes,
            copy % 2 == 1,
            tile.first,
            task.grad_y + (tile.b * task.steps + first) * task.channels +
                chunk.first + c,
            task.channels,
            sums + copy * size + c,
            pitch);
      }
    });
  }
  block.each([&](int thread) {
    for (int c = thread; c < chunk.width; c += block.threads()) {
      A sum = 0;
      S* const out = task.out +
          (tile.b * task.steps + tile.first) * task.channels + chunk.first + c;
      for (int r = 0; r < tile.rows; ++r) {
        for (int copy = 0; copy < plan.copies; ++copy)
          sum += sums[copy * size + r * pitch + c];
        out[r * task.channels] =
            Narrow<S>::from(r < real ? sum * task.scale : A(0));
      }
    }
  });
}

/// Part of a phase: sums over channels of x[border row] * grad_y[t].
template <class S>
SEQCONV_DEVICE void add_edges(
    const S* left,
    const S* right,
    const S* grad_y,
    int begin,
    int end,
    int step,
    AccumulatorOf<S> (&sums)[2]) {
  for (int c = begin; c < end; c += step) {
    const AccumulatorOf<S> g = widen(grad_y[c]);
    sums[0] += widen(left[c]) * g;
    sums[1] += widen(right[c]) * g;
  }
}

/// One phase: the edge products of a chunk, added to edges [heads * tile, 2]:
/// a warp for a row where a block has one head, else a thread for a row of a
/// head.
template <class S, class Block>
SEQCONV_DEVICE void edge_products(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    bool fresh) {
  using A = AccumulatorOf<S>;
  const int real = tile.real(), R = task.head_channels;
  const auto* const windows =
      shared_at<TalkWindow<A>>(block.shared(), task.plan.windows_at);
  A* const edges = shared_at<A>(block.shared(), task.plan.edges_at);
  const S* const x = task.x + tile.b * task.steps * task.channels + chunk.first;
  const S* const grad_y =
      task.grad_y + tile.b * task.steps * task.channels + chunk.first;
  const auto add = [&](int h, int r, int begin, int end, int step, A(&s)[2]) {
    const TalkWindow<A> w = windows[r * tile.heads + h];
    add_edges(
        x + w.left_row() * task.channels,
        x + w.right_row() * task.channels,
        grad_y + (tile.first + r) * task.channels,
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
        const int h = n % tile.heads, r = n / tile.heads;
        A sums[2] = {};
        add(h, r, h * R, (h + 1) * R, 1, sums);
        put(n, sums[0], sums[1]);
      }
    });
    return;
  }
  const int warps = block.threads() / kWarp;
  block.warps([&](auto& warp) {
    for (int r = warp.index(); r < real; r += warps) {
      Lanes<A> left, right;
      warp.each([&](int lane) {
        A sums[2] = {};
        add(0, r, lane, chunk.width, kWarp, sums);
        left[lane] = sums[0];
        right[lane] = sums[1];
      });
      const A left_sum = lane_sum<A>(warp, left);
      const A right_sum = lane_sum<A>(warp, right);
      warp.each([&](int lane) {
        if (lane == 0)
          put(r, left_sum, right_sum);
      });
    }
  });
}

/// One phase: d out / d left = max_left * x[border] / window where the border
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
        const int at = n;
        const TalkWindow<A> w = windows[at];
        if (w.left != 0)
          left = edges[2 * at] * task.max_left * task.scale;
        if (w.right != 0)
          right = edges[2 * at + 1] * task.max_right * task.scale;
      }
      const int64_t i =
          (tile.b * task.steps + tile.first + r) * task.all_heads + tile.head +
          h;
      store_stored(task.grad_left, task.offsets.storage, i, left);
      if (task.grad_right != nullptr)
        store_stored(task.grad_right, task.offsets.storage, i, right);
    }
  });
}

template <class S, class Block>
SEQCONV_DEVICE void talk_backward_body(Block& block, const TalkTask<S>& task) {
  const TalkTile tile(task, block.index());
  TalkSpan around = {0, 0};
  if (tile.real() > 0)
    around = find_neighbours(block, task, tile);
  for (int i = 0; i < task.plan.chunks; ++i) {
    const TalkChunk chunk(task, tile, i);
    input_gradient(block, task, tile, chunk, around);
    make_windows(block, task, tile.own_positions());
    edge_products(block, task, tile, chunk, /*fresh=*/i == 0);
  }
  write_offset_gradients(block, task, tile);
}

}  // namespace seqconv::kernels::cuda
