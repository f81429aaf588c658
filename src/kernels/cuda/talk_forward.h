#pragma once

#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/talk_plan.h"

/// TaLK forward: prefix sums of the rows that a tile's windows touch, and no
/// others, in shared memory; every output is a difference of two of them and
/// two shares of a row.
namespace seqconv::kernels::cuda {

/// Two phases: prefix sums [rows + 1, width] of the chunk's rows from
/// span.begin on. Segments are scanned side by side, then what came before
/// them is added.
template <int V, class S, class Block>
SEQCONV_DEVICE void scan_rows(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    const TalkSpan& span,
    AccumulatorOf<S>* sums,
    AccumulatorOf<S>* totals) {
  using A = AccumulatorOf<S>;
  const int columns = chunk.width / V, pitch = task.plan.width;
  const int rows = span.end - span.begin;
  const int segments = pieces_of(rows, kTalkSegment);
  const S* const from =
      task.x + (tile.b * task.steps + span.begin) * task.channels + chunk.first;
  block.each([&](int thread) {
    for (int n = thread; n < columns * segments; n += block.threads()) {
      const int c = n % columns * V, segment = n / columns;
      const int begin = segment * kTalkSegment;
      const int end = least(begin + kTalkSegment, rows);
      A sum[V] = {};
      if (segment == 0)
        store_narrow<V>(sums + c, sum);
      // Several loads under way before the first sum is stored.
      constexpr int kAtOnce = 8;
      for (int r0 = begin; r0 < end; r0 += kAtOnce) {
        A in[kAtOnce][V] = {};
        SEQCONV_UNROLL
        for (int i = 0; i < kAtOnce; ++i)
          if (r0 + i < end)
            load_wide<V>(from + (r0 + i) * task.channels + c, in[i]);
        SEQCONV_UNROLL
        for (int i = 0; i < kAtOnce; ++i)
          if (r0 + i < end) {
            SEQCONV_UNROLL
            for (int v = 0; v < V; ++v)
              sum[v] += in[i][v];
            store_narrow<V>(sums + (r0 + i + 1) * pitch + c, sum);
          }
      }
      store_narrow<V>(totals + segment * pitch + c, sum);
    }
  });
  block.each([&](int thread) {
    for (int n = thread + columns; n < columns * segments;
         n += block.threads()) {
      const int c = n % columns * V, segment = n / columns;
      const int begin = segment * kTalkSegment;
      const int end = least(begin + kTalkSegment, rows);
      A before[V] = {};
      for (int s = 0; s < segment; ++s) {
        A total[V];
        load_wide<V>(totals + s * pitch + c, total);
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          before[v] += total[v];
      }
      for (int r = begin; r < end; ++r) {
        A sum[V];
        load_wide<V>(sums + (r + 1) * pitch + c, sum);
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sum[v] += before[v];
        store_narrow<V>(sums + (r + 1) * pitch + c, sum);
      }
    }
  });
}

/// The window's sum out of prefix sums that begin at row `origin`.
template <int V, class A>
SEQCONV_DEVICE void window_by_prefix(
    const TalkWindow<A>& w,
    const A* sums,
    int pitch,
    int origin,
    A (&out)[V]) {
  const auto row = [&](int r, A(&to)[V]) {
    load_wide<V>(sums + (r - origin) * pitch, to);
  };
  A upper[V], lower[V];
  row(w.end, upper);
  row(w.begin, lower);
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v)
    out[v] = upper[v] - lower[v];
  row(w.left_row() + 1, upper);
  row(w.left_row(), lower);
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v)
    out[v] += w.left * (upper[v] - lower[v]);
  row(w.right_row() + 1, upper);
  row(w.right_row(), lower);
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v)
    out[v] += w.right * (upper[v] - lower[v]);
}

/// The same row by row: for windows that reach further than a block can keep.
template <int V, class S, class A>
SEQCONV_DEVICE void window_by_rows(
    const TalkWindow<A>& w,
    const S* rows,
    int64_t stride,
    A (&out)[V]) {
  const auto add = [&](int r, A share) {
    A in[V];
    load_wide<V>(rows + r * stride, in);
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v)
      out[v] += share * in[v];
  };
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v)
    out[v] = A(0);
  for (int r = w.begin; r < w.end; ++r)
    add(r, A(1));
  for (int r = w.end; r < w.begin; ++r)
    add(r, A(-1));
  add(w.left_row(), w.left);
  add(w.right_row(), w.right);
}

template <int V, class S, class Block>
SEQCONV_DEVICE void talk_forward_body(Block& block, const TalkTask<S>& task) {
  using A = AccumulatorOf<S>;
  const TalkPlan& plan = task.plan;
  const TalkTile tile(task, block.index());
  const int real = tile.real();
  auto* const windows =
      shared_at<TalkWindow<A>>(block.shared(), plan.windows_at);
  const TalkSpan span = join_spans(
      block,
      shared_at<TalkSpan>(block.shared(), plan.spans_at),
      [&](int thread) {
        TalkSpan mine;
        for (int n = thread; n < real * tile.heads; n += block.threads()) {
          const int h = n % tile.heads, r = n / tile.heads;
          const auto w =
              task.window(tile.b, tile.first + r, tile.head + h, tile.valid);
          windows[h * kTalkTile + r] = w;
          mine.add(w);
        }
        return mine;
      });
  const bool fits = real > 0 && span.end - span.begin <= plan.capacity;
  A* const sums = shared_at<A>(block.shared(), plan.sums_at);
  for (int i = 0; i < TalkChunk::count(task, tile); ++i) {
    const TalkChunk chunk(task, tile, i);
    if (fits)
      scan_rows<V>(
          block,
          task,
          tile,
          chunk,
          span,
          sums,
          shared_at<A>(block.shared(), plan.totals_at));
    const int64_t row0 = tile.b * task.steps;
    block.each([&](int thread) {
      const int columns = chunk.width / V, stride = block.threads() / columns;
      const int c = thread % columns * V;
      const int h = tile.heads > 1 ? c / task.head_channels : 0;
      if (thread / columns >= stride)
        return;
      for (int r = thread / columns; r < tile.rows; r += stride) {
        A out[V] = {};
        if (r < real) {
          const TalkWindow<A> w = windows[h * kTalkTile + r];
          if (fits)
            window_by_prefix<V>(w, sums + c, plan.width, span.begin, out);
          else
            window_by_rows<V>(
                w,
                task.x + row0 * task.channels + chunk.first + c,
                task.channels,
                out);
        }
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          out[v] *= task.scale;
        store_narrow<V>(
            task.out + (row0 + tile.first + r) * task.channels + chunk.first +
                c,
            out);
      }
    });
  }
}

}  // namespace seqconv::kernels::cuda
