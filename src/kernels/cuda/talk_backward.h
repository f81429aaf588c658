#pragma once

#include "kernels/cuda/talk_edges.h"
#include "kernels/cuda/talk_reach.h"

/// TaLK backward: a block owns a tile of grad_x and looks at all windows that
/// reach into it. Threads own columns of difference arrays, so that nothing is
/// shared and nothing atomic.
namespace seqconv::kernels::cuda {

/// Where a window changes what a tile's rows get: it turns on at row `left_at`
/// of the difference array and off at `right_at`, in two steps where a row has
/// only a share.
template <class A>
struct alignas(16) TalkEdges {
  int left_at;  ///< negative: the window does not touch the tile
  int right_at;
  A left;
  A right;

  /// Edges before the tile go to the row before it, those behind it to the
  /// two behind.
  SEQCONV_DEVICE TalkEdges(const TalkWindow<A>& w, int origin)
      : left_at(place(w.begin - 1 - origin)),
        right_at(place(w.end - origin)),
        left(w.left),
        right(w.right) {
    TalkSpan span;
    span.add(w);
    if (span.end <= origin || span.begin >= origin + kTalkTile)
      left_at = -1;
  }

 private:
  static SEQCONV_DEVICE int place(int r) {
    return clamped(r, -1, kTalkTile) + 1;
  }
};
static_assert(sizeof(TalkEdges<float>) == sizeof(TalkWindow<float>));
static_assert(sizeof(TalkEdges<double>) == sizeof(TalkWindow<double>));

/// Shared memory that windows and edges take in turn.
template <class S>
SEQCONV_DEVICE TalkEdges<AccumulatorOf<S>>* edges_of(
    const TalkTask<S>& task,
    char* shared) {
  return shared_at<TalkEdges<AccumulatorOf<S>>>(shared, task.plan.windows_at);
}

/// One phase: the edges of the windows of a range of at most plan.around
/// positions.
template <class S, class Block>
SEQCONV_DEVICE void make_edges(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkRange& range) {
  using A = AccumulatorOf<S>;
  auto* const edges = edges_of(task, block.shared());
  block.each([&](int thread) {
    each_window<1>(
        task,
        range,
        thread,
        block.threads(),
        [&](int h, int r, const auto& w) {
          edges[r * range.heads + h] = TalkEdges<A>(w, tile.first);
        });
  });
}

/// Different rows += shares of g: all of them are read before one is written.
template <int V, int N, class A>
SEQCONV_DEVICE void
add_shares(A* const (&rows)[N], const A (&shares)[N], const A (&g)[V]) {
  A sums[N][V];
  SEQCONV_UNROLL
  for (int n = 0; n < N; ++n)
    load_wide<V>(rows[n], sums[n]);
  SEQCONV_UNROLL
  for (int n = 0; n < N; ++n) {
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v)
      sums[n][v] += shares[n] * g[v];
    store_narrow<V>(rows[n], sums[n]);
  }
}

/// What a window adds to a thread's columns.
template <int V, class A>
SEQCONV_DEVICE void
add_edges(const TalkEdges<A>& w, A* column, int pitch, const A (&g)[V]) {
  A* const on = column + w.left_at * pitch;
  A* const off = column + w.right_at * pitch;
  const A first = A(1) - w.left, last = w.right - A(1);
  if (w.right_at >= w.left_at + 2) {
    add_shares<V, 4, A>(
        {on, on + pitch, off, off + pitch},
        {w.left, first, last, -w.right},
        g);
  } else {  // cut short by the tile's end, or of negative offsets
    add_shares<V, 2, A>({on, on + pitch}, {w.left, first}, g);
    add_shares<V, 2, A>({off, off + pitch}, {last, -w.right}, g);
  }
}

/// Part of a phase: what a thread's windows of a range add to its columns: row
/// n of every `copies` belongs to copy n.
template <int V, class S, class Block>
SEQCONV_DEVICE void scatter_edges(
    const Block& block,
    int thread,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    const TalkRange& range) {
  using A = AccumulatorOf<S>;
  const TalkPlace<V> place(task.plan, thread);
  const int copies = task.plan.copies, pitch = task.plan.width;
  if (place.row >= copies || place.is_idle(chunk))
    return;
  const int c = place.channel();
  const int h = tile.heads > 1 ? c / task.head_channels : 0;
  const auto* const edges = edges_of(task, block.shared()) + h;
  A* const column = shared_at<A>(block.shared(), task.plan.sums_at) +
      place.row * kTalkSteps * pitch + c;
  const S* const from = task.grad_y + chunk.first + c +
      (tile.b * task.steps + range.first) * task.channels;
  // Loads under way before the first is used.
  constexpr int kAtOnce = 8;
  SEQCONV_NO_UNROLL
  for (int r0 = place.row; r0 < range.count; r0 += kAtOnce * copies) {
    Pack<S, V> in[kAtOnce];
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      in[i] = load_pack<S, V>(
          row_at(from, min(r0 + i * copies, range.count - 1), task.row_bytes));
    SEQCONV_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int r = r0 + i * copies;
      if (r >= range.count)
        break;
      const TalkEdges<A> w = edges[r * tile.heads];
      if (w.left_at < 0)
        continue;
      A g[V];
      widen_pack<V>(in[i], g);
      add_edges<V>(w, column, pitch, g);
    }
  }
}

/// Rows that a thread adds up.
inline constexpr int kTalkPart = 8;

/// Part of a phase: the first copy's rows become sums over all copies and over
/// the rows before them in their part of the tile.
template <int V, class S>
SEQCONV_DEVICE void
sum_parts(const TalkTask<S>& task, const TalkPlace<V>& place, char* shared) {
  using A = AccumulatorOf<S>;
  const int pitch = task.plan.width;
  A* const column = shared_at<A>(shared, task.plan.sums_at) + place.channel();
  SEQCONV_NO_UNROLL
  for (int part = place.row; part < kTalkTile / kTalkPart;
       part += place.stride) {
    A* const at = column + (1 + part * kTalkPart) * pitch;
    A sum[V] = {}, rows[kTalkPart][V] = {};
    const auto add = [](const A* from, A(&to)[V]) {
      A in[V];
      load_wide<V>(from, in);
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        to[v] += in[v];
    };
    SEQCONV_NO_UNROLL
    for (int copy = 0; copy < task.plan.copies; ++copy) {
      const int to_copy = copy * kTalkSteps * pitch;
      if (part == 0)  // the row before the tile
        add(column + to_copy, sum);
      SEQCONV_UNROLL
      for (int i = 0; i < kTalkPart; ++i)
        add(at + to_copy + i * pitch, rows[i]);
    }
    SEQCONV_UNROLL
    for (int i = 0; i < kTalkPart; ++i) {
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        sum[v] += rows[i][v];
      store_narrow<V>(at + i * pitch, sum);
    }
  }
}

/// Part of a phase: grad_x from those sums.
template <int V, class S>
SEQCONV_DEVICE void write_input_gradient(
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    const TalkPlace<V>& place,
    char* shared) {
  using A = AccumulatorOf<S>;
  const int pitch = task.plan.width, real = tile.real();
  const A* const column =
      shared_at<A>(shared, task.plan.sums_at) + place.channel();
  S* const out = task.out + chunk.first + place.channel() +
      (tile.b * task.steps + tile.first) * task.channels;
  SEQCONV_NO_UNROLL
  for (int part = place.row; part < kTalkTile / kTalkPart;
       part += place.stride) {
    A before[V] = {};
    SEQCONV_NO_UNROLL
    for (int p = 1; p <= part; ++p) {
      A in[V];
      load_wide<V>(column + p * kTalkPart * pitch, in);
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        before[v] += in[v];
    }
    SEQCONV_UNROLL
    for (int i = 0; i < kTalkPart; ++i) {
      const int r = part * kTalkPart + i;
      if (r >= tile.rows)
        break;
      A sum[V];
      load_wide<V>(column + (1 + r) * pitch, sum);
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        sum[v] = r < real ? (before[v] + sum[v]) * task.scale : A(0);
      store_narrow<V>(row_at(out, r, task.row_bytes), sum);
    }
  }
}

/// grad_x of a chunk of the tile, from the windows of positions `around`.
template <int V, class S, class Block>
SEQCONV_DEVICE void input_gradient(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    const TalkSpan& around) {
  using A = AccumulatorOf<S>;
  A* const sums = shared_at<A>(block.shared(), task.plan.sums_at);
  block.each([&](int thread) {
    const A zero[V] = {};
    const int count = task.plan.copies * kTalkSteps * task.plan.width;
    for (int n = thread * V; n < count; n += block.threads() * V)
      store_narrow<V>(sums + n, zero);
  });
  TalkRange range = tile.own_positions();
  for (int first = around.begin; first < around.end;
       first += task.plan.around) {
    range.first = first;
    range.count = min(task.plan.around, around.end - first);
    make_edges(block, task, tile, range);
    block.each([&](int thread) {
      scatter_edges<V>(block, thread, task, tile, chunk, range);
    });
  }
  block.each([&](int thread) {
    const TalkPlace<V> place(task.plan, thread);
    if (!place.is_idle(chunk))
      sum_parts<V>(task, place, block.shared());
  });
  block.each([&](int thread) {
    const TalkPlace<V> place(task.plan, thread);
    if (!place.is_idle(chunk))
      write_input_gradient<V>(task, tile, chunk, place, block.shared());
  });
}

template <int V, class S, class Block>
SEQCONV_DEVICE void talk_backward_body(Block& block, const TalkTask<S>& task) {
  const TalkTile tile(task, block.index());
  TalkSpan around = {0, 0};
  if (tile.real() > 0 && task.out != nullptr)
    around = find_neighbours(block, task, tile);
  for (int i = 0; i < task.plan.chunks; ++i) {
    const TalkChunk chunk(task, tile, i);
    if (task.out != nullptr)
      input_gradient<V>(block, task, tile, chunk, around);
    if (!task.wants_offsets())
      continue;
    make_windows(block, task, tile);
    edge_products<V>(block, task, tile, chunk, /*fresh=*/i == 0);
  }
  if (task.wants_offsets())
    write_offset_gradients(block, task, tile);
}

}  // namespace seqconv::kernels::cuda
