#pragma once

#include "kernels/cuda/talk/edges.h"

/// TaLK backward: a block owns a tile of grad_x and looks at all windows that
/// reach into it. Threads own columns of difference arrays, so that nothing is
/// shared and nothing atomic.
namespace seqconv::internal::kernels::cuda {

/// A first pass: how far the windows of a tile reach from their positions, a
/// block for every tile with all its heads.
struct TalkReachBody {
  static constexpr int kMinBlocks = 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    TalkTile tile = tile_of(task, block.index());
    const auto of = [&](int thread) {
      TalkSpan reach = {0, 0};
      tile.heads = kTalkHeads;
      for (tile.head = 0; tile.head < task.all_heads; tile.head += tile.heads) {
        tile.heads = min(tile.heads, task.all_heads - tile.head);
        each_window(
            task, tile, tile.first, tile.real(task), thread, [&](int, int r, const TalkWindow& w) {
              TalkSpan span;
              span.add(w);
              const int t = tile.first + r;
              reach.add(span.begin - t, span.end - t);
            });
      }
      return reach;
    };
    const TalkSpan reach = join_spans(block, shared_at<TalkSpan>(block.shared(), 0), of);
    block.each([&](int thread) {
      if (thread == 0)
        task.reach[tile.b * task.plan.tiles + tile.first / kTalkTile] = reach;
    });
  }
};

/// One phase: positions [begin, end) whose windows may reach into the tile;
/// begin is a multiple of kMaxCopies.
template <class S, class Block>
SEQCONV_DEVICE TalkSpan
find_neighbours(Block& block, const TalkTask<S>& task, const TalkTile& tile) {
  const TalkMemory memory(task.plan, block.shared());
  TalkSpan around = join_spans(block, memory.spans, [&](int thread) {
    TalkSpan mine;
    for (int k = thread; k < task.plan.tiles; k += kThreads) {
      const TalkSpan reach = task.reach[tile.b * task.plan.tiles + k];
      const int first = k * kTalkTile;
      const int from = max(first, tile.first - reach.end + 1);
      const int to = min(min(first + kTalkTile, tile.valid), tile.first + kTalkTile - reach.begin);
      if (from < to)
        mine.add(from, to);
    }
    return mine;
  });
  around.begin = around.begin / kMaxCopies * kMaxCopies;
  return around;
}

/// Where a window changes what a tile's rows get: it turns on at row `left_at`
/// of the difference array and off at `right_at`, in two steps where a row has
/// only a share.
struct alignas(16) TalkEdges {
  int left_at;  ///< negative: the window does not touch the tile
  int right_at;
  float left;
  float right;

  /// Edges before the tile go to the row before it, those behind it to the
  /// two behind.
  SEQCONV_DEVICE TalkEdges(const TalkWindow& w, int origin)
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
  static SEQCONV_DEVICE int place(int r) { return clamped(r, -1, kTalkTile) + 1; }
};
static_assert(sizeof(TalkEdges) == sizeof(TalkWindow));

/// Shared memory that windows and edges take in turn.
SEQCONV_DEVICE TalkEdges* edges_of(const TalkPlan& plan, char* shared) {
  return shared_at<TalkEdges>(shared, plan.windows_at);
}

/// Different rows += shares of g: all of them are read before one is written.
template <int V, int N>
SEQCONV_DEVICE void add_shares(
    float* const (&rows)[N], const float (&shares)[N], const float (&g)[V]) {
  float sums[N][V];
  unroll<N>([&](int n) { load_wide<V>(rows[n], sums[n]); });
  unroll<N>([&](int n) {
    unroll<V>([&](int v) { sums[n][v] += shares[n] * g[v]; });
    store_narrow<V>(rows[n], sums[n]);
  });
}

/// What a window adds to a thread's columns.
template <int V>
SEQCONV_DEVICE void add_edges(const TalkEdges& w, float* column, int pitch, const float (&g)[V]) {
  float* const on = column + w.left_at * pitch;
  float* const off = column + w.right_at * pitch;
  const float first = 1.0f - w.left, last = w.right - 1.0f;
  if (w.right_at >= w.left_at + 2) {
    add_shares<V, 4>({on, on + pitch, off, off + pitch}, {w.left, first, last, -w.right}, g);
  } else {  // cut short by the tile's end, or of negative offsets
    add_shares<V, 2>({on, on + pitch}, {w.left, first}, g);
    add_shares<V, 2>({off, off + pitch}, {last, -w.right}, g);
  }
}

/// Part of a phase: what a thread's windows of positions [first, first + count)
/// add to its columns: row n of every `copies` belongs to copy n.
template <int V, class S>
SEQCONV_DEVICE void scatter_edges(
    int thread,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const Chunk& chunk,
    char* shared,
    int first,
    int count) {
  const Place<V> place(task.plan, thread);
  const int copies = task.plan.copies, pitch = task.plan.width;
  if (place.row >= copies || place.is_idle(chunk.width))
    return;
  const int c = place.channel();
  const TalkEdges* const edges = edges_of(task.plan, shared) + head_of(task, tile, c);
  float* const column = TalkMemory(task.plan, shared).sums + place.row * kTalkSteps * pitch + c;
  const S* const from = task.grad_y + task.element(tile.b, first, chunk.first + c);
  load_ahead<8>(
      place.row,
      count,
      copies,
      [&](int r) { return load_pack<S, V>(row_at(from, min(r, count - 1), task.row_bytes)); },
      [&](int r, const Pack<S, V>& in) {
        const TalkEdges w = edges[r * tile.heads];
        if (w.left_at < 0)
          return;
        float g[V];
        widen_pack<V>(in, g);
        add_edges<V>(w, column, pitch, g);
      });
}

/// Rows that a thread adds up.
inline constexpr int kTalkPart = 8;

/// Part of a phase: the first copy's rows become sums over all copies and over
/// the rows before them in their part of the tile.
template <int V, class S>
SEQCONV_DEVICE void sum_parts(const TalkTask<S>& task, const Place<V>& place, char* shared) {
  const int pitch = task.plan.width;
  float* const column = TalkMemory(task.plan, shared).sums + place.channel();
  SEQCONV_NO_UNROLL
  for (int part = place.row; part < kTalkTile / kTalkPart; part += place.stride) {
    float* const at = column + (1 + part * kTalkPart) * pitch;
    float sum[V] = {}, rows[kTalkPart][V] = {};
    SEQCONV_NO_UNROLL
    for (int copy = 0; copy < task.plan.copies; ++copy) {
      const int to_copy = copy * kTalkSteps * pitch;
      if (part == 0)  // the row before the tile
        add_wide<V>(column + to_copy, 1.0f, sum);
      unroll<kTalkPart>([&](int i) { add_wide<V>(at + to_copy + i * pitch, 1.0f, rows[i]); });
    }
    unroll<kTalkPart>([&](int i) {
      unroll<V>([&](int v) { sum[v] += rows[i][v]; });
      store_narrow<V>(at + i * pitch, sum);
    });
  }
}

/// Part of a phase: grad_x from those sums.
template <int V, class S>
SEQCONV_DEVICE void write_input_gradient(
    const TalkTask<S>& task,
    const TalkTile& tile,
    const Chunk& chunk,
    const Place<V>& place,
    char* shared) {
  const int pitch = task.plan.width, real = tile.real(task);
  const int rows = tile.rows(task);
  const float* const column = TalkMemory(task.plan, shared).sums + place.channel();
  S* const out = task.out + task.element(tile.b, tile.first, chunk.first + place.channel());
  SEQCONV_NO_UNROLL
  for (int part = place.row; part < kTalkTile / kTalkPart; part += place.stride) {
    float before[V] = {};
    SEQCONV_NO_UNROLL
    for (int p = 1; p <= part; ++p)
      add_wide<V>(column + p * kTalkPart * pitch, 1.0f, before);
    SEQCONV_UNROLL
    for (int i = 0; i < kTalkPart; ++i) {
      const int r = part * kTalkPart + i;
      if (r >= rows)
        break;
      float sum[V];
      load_wide<V>(column + (1 + r) * pitch, sum);
      unroll<V>([&](int v) { sum[v] = r < real ? (before[v] + sum[v]) * task.scale : 0.0f; });
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
    const Chunk& chunk,
    const TalkSpan& around) {
  char* const shared = block.shared();
  float* const sums = TalkMemory(task.plan, shared).sums;
  block.each([&](int thread) {
    const float zero[V] = {};
    const int count = task.plan.copies * kTalkSteps * task.plan.width;
    for (int n = thread * V; n < count; n += kThreads * V)
      store_narrow<V>(sums + n, zero);
  });
  for (int first = around.begin; first < around.end; first += task.plan.around) {
    const int count = min(task.plan.around, around.end - first);
    block.each([&](int thread) {
      TalkEdges* const edges = edges_of(task.plan, shared);
      each_window(task, tile, first, count, thread, [&](int n, int, const TalkWindow& w) {
        edges[n] = TalkEdges(w, tile.first);
      });
    });
    block.each(
        [&](int thread) { scatter_edges<V>(thread, task, tile, chunk, shared, first, count); });
  }
  const auto each_place = [&](const auto& f) {
    block.each([&](int thread) {
      const Place<V> place(task.plan, thread);
      if (!place.is_idle(chunk.width))
        f(place);
    });
  };
  each_place([&](const auto& place) { sum_parts<V>(task, place, shared); });
  each_place([&](const auto& place) { write_input_gradient<V>(task, tile, chunk, place, shared); });
}

template <int V>
struct TalkBackwardBody {
  // Of four channels the compiler's own choice spills least: 8 bytes, float16.
  static constexpr int kMinBlocks = V == 4 ? 0 : 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    const TalkTile tile = tile_of(task, block.index());
    TalkSpan around = {0, 0};
    if (tile.real(task) > 0 && task.out != nullptr)
      around = find_neighbours(block, task, tile);
    for (int i = 0; i < task.plan.chunks; ++i) {
      const Chunk chunk(task, tile, i);
      if (task.out != nullptr)
        input_gradient<V>(block, task, tile, chunk, around);
      if (task.wants_offsets())
        edge_products<V>(block, task, tile, chunk, /*fresh=*/i == 0);
    }
    if (task.wants_offsets())
      write_offset_gradients(block, task, tile);
  }
};

}  // namespace seqconv::internal::kernels::cuda
