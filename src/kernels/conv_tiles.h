#pragma once

#include <vector>

#include "kernels/taps.h"

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
        ConvPlace at = grid.get(begin);
        for (int64_t item = begin; item < end; ++item) {
          const ConvPlace next = grid.get(std::min(item + 1, end - 1));
          work(at, next);
          at = next;
        }
      });
}

/// Adds the rows of a place in a tensor [B, T, H, width], and those around it
/// that its last row sees: rows [after, after + rows), and the K-1 before them.
template <class S>
void fetch_rows(
    FetchAhead& fetch,
    const ConvShape& shape,
    const ConvPlace& at,
    const S* tensor,
    int64_t width,
    int64_t after = 0) {
  const int64_t row = shape.heads * width;
  const auto add = [&](int64_t begin, int64_t end) {
    begin = std::max<int64_t>(0, begin);
    fetch.add(
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

/// Rows that are finished for all heads before the next ones are begun, when
/// memory and not the arithmetic is waited for: reading goes straight on.
inline constexpr int64_t kStreamRows = 32;

/// A convolution of [B, T, C] that is done place by place.
template <class S, class A>
struct PlaceConvolution {
  int64_t padding_left = 0;
  HeadTaps<A> taps;
  const S* in = nullptr;
  S* out = nullptr;
  const A* bias = nullptr;   ///< [C] or null
  bool streaming = false;    ///< stores go past the caches
  bool fetch_out = true;     ///< `out` is fetched for what comes next
  const S* fetch = nullptr;  ///< a tensor that is fetched too, or null
};

/// Adds what a convolution of a place needs.
template <class S, class A>
void fetch_convolution(
    FetchAhead& fetch,
    const ConvShape& shape,
    const ConvPlace& at,
    const PlaceConvolution<S, A>& conv) {
  const int64_t R = shape.head_channels();
  const int64_t after = shape.kernel_size - 1 - conv.padding_left;
  fetch_rows(fetch, shape, at, conv.in, R, after);
  if (!conv.streaming && conv.fetch_out)
    fetch_rows(fetch, shape, at, conv.out, R);
  if (conv.fetch != nullptr)
    fetch_rows(fetch, shape, at, conv.fetch, R, conv.padding_left);
}

/// Nothing, for convolve_place().
inline constexpr auto kFetchNoMore = [](FetchAhead&, const ConvPlace&) {};

/// out[t] = bias + sum_j tap * in[t - padding_left + j] for the real rows and
/// the heads of a place; the other rows become zero. What the next rows and
/// heads need is fetched meanwhile, and what fetch_more(fetch, rows of the next
/// place) adds.
template <class S, class A, class FetchMore>
void convolve_place(
    const RowOps<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    const ConvPlace& next,
    const PlaceConvolution<S, A>& conv,
    const FetchMore& fetch_more) {
  const HeadTaps<A>& taps = conv.taps;
  const int64_t C = shape.channels, R = shape.head_channels();
  const int64_t T = shape.steps, real = at.real();
  const int64_t origin = at.batch * T * C + at.head * R;
  zero_rows(
      conv.out + origin,
      C,
      at.heads * R,
      at.first + real,
      at.first + at.rows);
  const int64_t begin =
      at.first - conv.padding_left;  // position of input row 0
  const int64_t together =
      conv.streaming ? kStreamRows : std::max<int64_t>(1, real);
  const int64_t parts = taps.lanes ? 1 : at.heads;
  for (int64_t t = 0; t < real; t += together)
    for (int64_t h = 0; h < parts; ++h) {
      FetchAhead fetch;
      if (h == 0)
        fetch_more(fetch, next.part(t, together));
      const ConvPlace then = h + 1 < parts ? at.part(t, together)
          : t + together < real            ? at.part(t + together, together)
                                           : next.part(0, together);
      fetch_convolution(
          fetch,
          shape,
          taps.lanes ? then : then.only((h + 1) % parts),
          conv);
      ops.convolve(
          {.in = conv.in + origin + (begin + t) * C + h * R,
           .in_stride = C,
           .first = -(begin + t),
           .last = at.valid - (begin + t),
           .taps =
               taps.data + h * taps.head_stride + t * (taps.tap_t + taps.tap_r),
           .tap_t = taps.tap_t,
           .tap_r = taps.tap_r,
           .lane_taps = taps.lanes,
           .kernel_size = shape.kernel_size,
           .rows = std::min(together, real - t),
           .channels = taps.lanes ? at.heads * R : R,
           .bias =
               conv.bias == nullptr ? nullptr : conv.bias + (at.head + h) * R,
           .out = conv.out + origin + (at.first + t) * C + h * R,
           .out_stride = C,
           .ahead = &fetch,
           .streaming = conv.streaming});
    }
}

}  // namespace seqconv::kernels
