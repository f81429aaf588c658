#pragma once

#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/talk_plan.h"

/// TaLK forward: sums of the rows that a tile's windows touch, and no others,
/// in shared memory. They start anew at every multiple of kTalkSegment, so that
/// neither the error nor a single bit of a window depends on what else a tile
/// looks at.
namespace seqconv::kernels::cuda {

/// Sums over the rows of segments. Row r (from the first segment's first row
/// on) has before[r], the sum of its segment's rows before it; a segment has
/// its total.
template <class A>
struct TalkSums {
  A* before;
  A* totals;
  int pitch;

  /// out += sum of rows [begin, end), or -= that of [end, begin).
  template <int V>
  SEQCONV_DEVICE void add_between(int begin, int end, A (&out)[V]) const {
    const int first = begin / kTalkSegment, last = end / kTalkSegment;
    for (int s = first; s < last; ++s)
      add(totals + s * pitch, A(1), out);
    for (int s = last; s < first; ++s)
      add(totals + s * pitch, A(-1), out);
    add(before + end * pitch, A(1), out);
    add(before + begin * pitch, A(-1), out);
  }

  /// out += share * row r.
  template <int V>
  SEQCONV_DEVICE void add_row(int r, A share, A (&out)[V]) const {
    const bool is_last = r % kTalkSegment == kTalkSegment - 1;
    A upper[V], lower[V];
    load_wide<V>(
        is_last ? totals + r / kTalkSegment * pitch : before + (r + 1) * pitch,
        upper);
    load_wide<V>(before + r * pitch, lower);
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v)
      out[v] += share * (upper[v] - lower[v]);
  }

 private:
  template <int V>
  SEQCONV_DEVICE static void add(const A* from, A sign, A (&out)[V]) {
    A value[V];
    load_wide<V>(from, value);
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v)
      out[v] += sign * value[v];
  }
};

/// One phase: the sums of a chunk's rows [origin, origin + rows), a thread for
/// a segment of V channels. before[rows] is there too.
template <int V, class S, class Block>
SEQCONV_DEVICE void scan_rows(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const TalkChunk& chunk,
    int origin,
    int rows,
    const TalkSums<AccumulatorOf<S>>& sums) {
  using A = AccumulatorOf<S>;
  const int columns = chunk.width / V, pitch = sums.pitch;
  const int segments = rows / kTalkSegment + 1;
  const S* const from =
      task.x + (tile.b * task.steps + origin) * task.channels + chunk.first;
  block.each([&](int thread) {
    for (int n = thread; n < columns * segments; n += block.threads()) {
      const int c = n % columns * V, segment = n / columns;
      const int begin = segment * kTalkSegment;
      const int end = least(begin + kTalkSegment, rows);
      A sum[V] = {};
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
            store_narrow<V>(sums.before + (r0 + i) * pitch + c, sum);
            SEQCONV_UNROLL
            for (int v = 0; v < V; ++v)
              sum[v] += in[i][v];
          }
      }
      if (segment == segments - 1)  // perhaps without a row
        store_narrow<V>(sums.before + rows * pitch + c, sum);
      store_narrow<V>(sums.totals + segment * pitch + c, sum);
    }
  });
}

/// The window's sum out of those of its rows.
template <int V, class A>
SEQCONV_DEVICE void window_by_sums(
    const TalkWindow<A>& w,
    const TalkSums<A>& sums,
    int column,
    int origin,
    A (&out)[V]) {
  const TalkSums<A> mine = {
      sums.before + column,
      sums.totals + column,
      sums.pitch};
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v)
    out[v] = A(0);
  mine.add_between(w.begin - origin, w.end - origin, out);
  mine.add_row(w.left_row() - origin, w.left, out);
  mine.add_row(w.right_row() - origin, w.right, out);
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
  const int origin = real > 0 ? span.begin / kTalkSegment * kTalkSegment : 0;
  const bool fits = real > 0 && span.end - origin <= plan.capacity;
  const TalkSums<A> sums = {
      shared_at<A>(block.shared(), plan.sums_at),
      shared_at<A>(block.shared(), plan.totals_at),
      plan.width};
  for (int i = 0; i < TalkChunk::count(task, tile); ++i) {
    const TalkChunk chunk(task, tile, i);
    if (fits)
      scan_rows<V>(block, task, tile, chunk, origin, span.end - origin, sums);
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
            window_by_sums<V>(w, sums, c, origin, out);
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
