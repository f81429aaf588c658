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

  /// From its first element to that of the place that comes next, in a tensor
  /// of `row` elements a position, `head_elements` a head.
  int64_t distance_to(
      const ConvPlace& next,
      int64_t steps,
      int64_t row,
      int64_t head_elements) const {
    const int64_t positions = (next.batch - batch) * steps + next.first - first;
    return positions * row + (next.head - head) * head_elements;
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

/// Where the taps of a tile's heads are: tap(t, r) of head h at
/// data + h * head_stride + t * tap_t + r * tap_r.
template <class A>
struct HeadTaps {
  const A* data = nullptr;
  int64_t head_stride = 0;
  int64_t tap_t = 0;
  int64_t tap_r = 0;
  bool lanes = false;  ///< a tap for every channel; head_stride is not used
  const A* scale = nullptr;  ///< [rows, heads] or null
};

/// Rows that are finished for all heads before the next ones are begun, when
/// memory and not the arithmetic is waited for: reading goes straight on.
inline constexpr int64_t kStreamRows = 12;

/// A convolution of [B, T, C] that is done place by place.
template <class S, class A>
struct PlaceConvolution {
  int64_t padding_left = 0;
  HeadTaps<A> taps;
  const S* in = nullptr;
  S* out = nullptr;
  const A* bias = nullptr;  ///< [C] or null
  int64_t ahead = 0;        ///< from this place to the next one, or 0
  bool streaming = false;   ///< stores go past the caches
};

/// out[t] = bias + sum_j tap * in[t - padding_left + j] for the real rows and
/// the heads of a place; the other rows become zero.
template <class S, class A>
void convolve_place(
    const RowOps<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    const PlaceConvolution<S, A>& conv) {
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
    for (int64_t h = 0; h < parts; ++h)
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
           .scale =
               taps.scale == nullptr ? nullptr : taps.scale + t * at.heads + h,
           .scale_stride = at.heads,
           .bias =
               conv.bias == nullptr ? nullptr : conv.bias + (at.head + h) * R,
           .out = conv.out + origin + (at.first + t) * C + h * R,
           .out_stride = C,
           .ahead = h + 1 < parts && !taps.lanes ? R : conv.ahead - h * R,
           .streaming = conv.streaming});
}

/// Calls work(tile) for all channels of `width` from channel c of a place, a
/// stage's width at a time: rows of grad_y, and of x staged in `staged`.
/// `ahead`: from these channels to those that are staged next, or 0.
template <class S, class A, class Args, class Work>
void for_staged_channels(
    const RowOps<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    int64_t first_channel,
    int64_t width,
    const Args& args,
    int64_t ahead,
    A* staged,
    const Work& work) {
  const int64_t C = shape.channels, K = shape.kernel_size;
  const int64_t begin = at.first - shape.padding_left;
  for (int64_t c = 0; c < width; c += kStagePitch) {
    const int64_t channels = std::min(kStagePitch, width - c);
    const int64_t origin = at.batch * shape.steps * C + first_channel + c;
    ops.stage(
        {.in = args.x + origin + begin * C,
         .in_stride = C,
         .first = -begin,
         .last = at.valid - begin,
         // Blocks of taps read a little beyond the last one.
         .rows = at.real() + K - 1 + kTapSlack,
         .channels = channels,
         .ahead = c + channels < width ? channels : ahead - c},
        staged);
    work(ProductTile<S, A>{
        .g = args.grad_y + origin + at.first * C,
        .g_stride = C,
        .x = staged,
        .kernel_size = K,
        .rows = at.real(),
        .channels = channels,
        .add = c > 0});
  }
}

/// The same for one head of a place; `ahead`: from this place to the next one.
template <class S, class A, class Args, class Work>
void for_staged_products(
    const RowOps<S, A>& ops,
    const ConvShape& shape,
    const ConvPlace& at,
    int64_t head,
    const Args& args,
    int64_t ahead,
    A* staged,
    const Work& work) {
  const int64_t R = shape.head_channels();
  for_staged_channels(
      ops,
      shape,
      at,
      (at.head + head) * R,
      R,
      args,
      head + 1 < at.heads ? R : ahead - head * R,
      staged,
      work);
}

/// Whether stores of a pass over x and y go past the caches.
template <class S>
bool streams(const ConvShape& shape, const S* out) {
  const auto whole = [](int64_t bytes) { return bytes % 64 == 0; };
  const int64_t size = sizeof(S);
  return whole(static_cast<int64_t>(reinterpret_cast<uintptr_t>(out))) &&
      whole(shape.head_channels() * size) &&
      exceeds_cache(2 * shape.batch * shape.steps * shape.channels * size);
}

}  // namespace seqconv::kernels
