#pragma once

#include <vector>

#include "kernels/conv/taps.h"

/// Tiles of the two convolutions: some rows of some heads of one sequence.
namespace seqconv::kernels {

/// A tile of a sequence and the heads [head, head + heads).
struct ConvPlace {
  int64_t batch = 0;
  int64_t first = 0;  ///< position of row 0
  int64_t rows = 0;
  int64_t valid = 0;  ///< real positions of the sequence
  int64_t head = 0;
  int64_t heads = 1;

  /// Its head number h alone.
  ConvPlace only(int64_t h) const {
    ConvPlace one = *this;
    one.head += h;
    one.heads = 1;
    return one;
  }

  /// The head that comes after its head number h, before those of `next`.
  ConvPlace after(int64_t h, const ConvPlace& next) const {
    return h + 1 < heads ? only(h + 1) : next.only(0);
  }

  /// Its rows [t, t + count) alone.
  ConvPlace part(int64_t t, int64_t count) const {
    ConvPlace some = *this;
    some.first += t;
    some.rows = std::clamp<int64_t>(rows - t, 0, count);
    return some;
  }

  /// Rows that are real.
  int64_t real() const { return std::clamp<int64_t>(valid - first, 0, rows); }
};

inline ConvPlace conv_place(
    const ConvShape& shape,
    const int64_t* lengths,
    const TileIndex& at,
    int64_t step,
    int64_t heads_of_group) {
  const int64_t first = at.tile * step, head = at.group * heads_of_group;
  return {
      .batch = at.batch,
      .first = first,
      .rows = std::min(step, shape.steps - first),
      .valid = valid_rows(lengths, at.batch, shape.steps),
      .head = head,
      .heads = std::min(heads_of_group, shape.heads - head)};
}

/// How [B, T, H] is cut into places: `step` positions, `heads` heads.
struct PlaceGrid {
  const ConvShape& shape;
  const int64_t* lengths;
  int64_t step;
  int64_t heads;
  int64_t tiles = ceil_div(shape.steps, step);
  int64_t groups = ceil_div(shape.heads, heads);

  int64_t count() const { return shape.batch * tiles * groups; }
  /// Groups of heads follow each other fastest.
  ConvPlace get(int64_t item) const {
    return conv_place(
        shape,
        lengths,
        TileIndex(item, tiles, groups),
        step,
        heads);
  }
};

/// Whether what is convolved is done before what comes next has come from
/// memory.
inline bool few_taps(const ConvShape& shape) {
  return shape.kernel_size <= 8;
}

/// Positions of a place in a forward pass: fewer where there would be too few
/// places for many threads.
inline int64_t forward_rows(const ConvShape& shape) {
  constexpr int64_t kMax = 64, kMin = 16, kPlaces = 64;
  int64_t rows = kMax;
  while (rows > kMin && shape.batch * ceil_div(shape.steps, rows) < kPlaces)
    rows /= 2;
  return rows;
}

/// Heads of a place that is walked through row by row: whole rows, unless those
/// that an output sees would leave the second-level cache.
inline int64_t heads_of_rows(const ConvShape& shape) {
  constexpr int64_t kMaxChannels = 1024;
  const int64_t groups = ceil_div(shape.channels, kMaxChannels);
  return ceil_div(shape.heads, std::min(groups, shape.heads));
}

/// Positions and heads of a place in a backward pass that makes taps of its
/// own, those of K-1 positions around it besides.
inline std::pair<int64_t, int64_t> backward_place(
    const ConvShape& shape,
    const CachePlan& plan) {
  constexpr int64_t kMaxTaps = 1 << 15;  // of the second-level cache
  constexpr int64_t kPlaces = 16;        // for many threads
  const int64_t K = shape.kernel_size, rows = tile_rows(K);
  const int64_t pitch = tap_pitch(K);
  const int64_t taps = shape.heads * (rows + K - 1) * pitch;
  // Few taps are gathered from lines that the heads beside them share. The
  // fewest make whole rows worth while: their work is done before what comes
  // next has.
  const bool few = pitch <= 16, fewest = K <= 4;
  // What is prefetched takes room as well.
  const int64_t max = plan.from_memory ? kMaxTaps / 4 * 3 : kMaxTaps;
  if (!(few && plan.from_memory) && taps <= max &&
      shape.batch * ceil_div(shape.steps, rows) >= kPlaces)
    return {rows, heads_of_rows(shape)};
  if (fewest)
    return {rows / 2, std::min<int64_t>(shape.heads, 16)};
  return {rows, few ? std::min<int64_t>(shape.heads, 8) : 1};
}

/// Rows whose taps, so many for each of them, stay in the first-level cache: a
/// multiple of what a convolution takes at once.
inline int64_t rows_together(int64_t taps_of_row) {
  constexpr int64_t kTaps = 4096;
  // A tall block is worth twice the room.
  const bool tall = kTallBlock * taps_of_row <= 2 * kTaps;
  return std::max<int64_t>(
      kTaps / taps_of_row / kRowBlock * kRowBlock,
      tall ? kTallBlock : kRowBlock);
}

/// Calls work(place, next place) for all places, where make_work() makes the
/// work of one thread; the last place of a thread is its own next one.
template <class MakeWork>
void for_places(
    const PlaceGrid& grid,
    int64_t operations_per_place,
    const Execution& run,
    const MakeWork& make_work) {
  run.parallel_for(
      grid.count(),
      grain_for(operations_per_place),
      [&](int64_t begin, int64_t end) {
        auto work = make_work();
        for (int64_t item = begin; item < end; ++item)
          work(grid.get(item), grid.get(std::min(item + 1, end - 1)));
      });
}

/// Adds the rows of a place in a tensor [B, T, H, width], and those around it
/// that its last row sees: rows [after, after + rows), and the K-1 before them.
template <class S>
void prefetch_rows(
    PrefetchRows& rows,
    const ConvShape& shape,
    const ConvPlace& at,
    const S* tensor,
    int64_t width,
    int64_t after = 0) {
  const int64_t row = shape.heads * width;
  const auto add = [&](int64_t begin, int64_t end) {
    begin = std::max<int64_t>(0, begin);
    rows.add(
        tensor + (at.batch * shape.steps + begin) * row + at.head * width,
        row,
        at.heads * width,
        std::min(at.valid, end) - begin);
  };
  const int64_t first = at.first + after;
  add(first, first + at.rows);
  if (after > 0)
    add(first - (shape.kernel_size - 1), first);
}

/// Where the taps of a tile's heads are: tap(t, r) of head h at
/// data + h * head_stride + t * tap_t + r * tap_r.
template <class A>
struct HeadTaps {
  const A* data = nullptr;
  int64_t head_stride = 0;
  int64_t tap_t = 0;
  int64_t tap_r = 0;
  bool lanes = false;  ///< a tap for every channel; head_stride is not used
};

/// A convolution of [B, T, C] that is done place by place.
template <class S, class A>
struct PlaceConvolution {
  int64_t padding_left = 0;
  HeadTaps<A> taps;
  const S* in = nullptr;
  S* out = nullptr;
  const A* bias = nullptr;  ///< [C] or null
  CachePlan plan;
  PrefetchPolicy prefetch;
};

template <class S, class A>
ConvTile<S, A> tile_of_place(
    const ConvShape& shape,
    const ConvPlace& at,
    const PlaceConvolution<S, A>& conv) {
  const HeadTaps<A>& taps = conv.taps;
  const int64_t C = shape.channels, R = shape.head_channels();
  const int64_t origin = at.batch * shape.steps * C + at.head * R;
  const int64_t begin = at.first - conv.padding_left;  // of input row 0
  return {
      .in = conv.in + origin + begin * C,
      .in_stride = C,
      .first = -begin,
      .last = at.valid - begin,
      .taps = taps.data,
      .tap_t = taps.tap_t,
      .tap_r = taps.tap_r,
      .head_stride = taps.head_stride,
      .lane_taps = taps.lanes,
      .kernel_size = shape.kernel_size,
      .rows = at.real(),
      .heads = taps.lanes ? 1 : at.heads,
      .channels = taps.lanes ? at.heads * R : R,
      .bias = conv.bias == nullptr ? nullptr : conv.bias + at.head * R,
      .out = conv.out + origin + at.first * C,
      .out_stride = C,
      .streaming = conv.plan.streams,
      .prefetch = conv.prefetch};
}

/// out[t] = bias + sum_j tap * in[t - padding_left + j] for the real rows and
/// the heads of a place; the other rows become zero. Row by row; `next_rows`
/// (null: nothing) is prefetched meanwhile.
template <class S, class A>
void convolve_place(
    const ConvKernels<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    const PlaceConvolution<S, A>& conv,
    PrefetchRows* next_rows = nullptr) {
  ConvTile<S, A> tile = tile_of_place(shape, at, conv);
  tile.next_rows = next_rows;
  const int64_t width = at.heads * shape.head_channels();
  zero_rows(tile.out, tile.out_stride, width, at.real(), at.rows);
  ops.convolve(tile);
}

/// The same head by head if memory is what is waited for, with what the next
/// head needs of `in` and `out` prefetched meanwhile, and what
/// prefetch_more(next_rows, next place) adds: spread over all the work of a
/// place, reading waits less than when it goes along rows of a part of it.
template <class S, class A, class PrefetchMore>
void convolve_heads(
    const ConvKernels<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    const ConvPlace& next,
    const PlaceConvolution<S, A>& conv,
    bool prefetch_out,
    const PrefetchMore& prefetch_more) {
  if (!conv.plan.from_memory || conv.taps.lanes || at.real() == 0)
    return convolve_place(ops, shape, at, conv);
  const int64_t R = shape.head_channels();
  const int64_t after = shape.kernel_size - 1 - conv.padding_left;
  for (int64_t h = 0; h < at.heads; ++h) {
    const ConvPlace then = at.after(h, next);
    PrefetchRows next_rows;
    if (h == 0)
      prefetch_more(next_rows, next);
    prefetch_rows(next_rows, shape, then, conv.in, R, after);
    if (prefetch_out && !conv.plan.streams)
      prefetch_rows(next_rows, shape, then, conv.out, R);
    PlaceConvolution<S, A> part = conv;
    part.taps.data += h * conv.taps.head_stride;
    convolve_place(ops, shape, at.only(h), part, &next_rows);
  }
}

}  // namespace seqconv::kernels
