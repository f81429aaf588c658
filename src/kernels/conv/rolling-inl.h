#if defined(SEQCONV_KERNELS_ROLLING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ROLLING_INL_H
#undef SEQCONV_KERNELS_ROLLING_INL_H
#else
#define SEQCONV_KERNELS_ROLLING_INL_H
#endif

#include "kernels/common/channels-inl.h"
#include "kernels/common/tiles.h"
#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Convolution of a single head with few taps: every input row is read once and
/// added to the K outputs that it feeds, whose sums are in registers and move
/// on by one with every row.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Vectors of a row that, with a tap and the sums, fit the registers. Of
/// sixteen registers a row would get one or two, and taps be read for so little
/// that it took up to twice as long as blocks.
template <int K>
inline constexpr int kRollingVectors = kRegisters < 32 ? 0
    : K * 4 + 1 <= kRegisters                          ? 4
    : K * 2 + 1 <= kRegisters                          ? 2
                                                       : 0;

/// The sums of the K-1 outputs that a row leaves unfinished; tap j of a row's
/// taps lies at -j.
template <class S, class A, int K, int NV>
struct RollingSums {
  static constexpr int kSums = K - 1;

  Vec<A> sum[kSums][NV];

  HWY_INLINE RollingSums() {
#pragma GCC unroll 32
    for (int s = 0; s < kSums; ++s)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        sum[s][v] = hn::Zero(Tag<A>());
  }

  static HWY_INLINE void read(const S* in, Vec<A> (&row)[NV]) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      row[v] = in_register(load_channels<NV>(in, v));
  }
  static HWY_INLINE Vec<A> tap(const A* taps, int j) {
    return hn::Set(Tag<A>(), taps[-j]);
  }

  /// Adds a row to the sums kFirst .. kLast; sum s takes tap kTap - s.
  template <int kFirst, int kLast, int kTap>
  HWY_INLINE void add(const S* in, const A* taps) {
    Vec<A> row[NV];
    read(in, row);
#pragma GCC unroll 32
    for (int s = kFirst; s <= kLast; ++s) {
      const auto w = tap(taps, kTap - s);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        sum[s][v] = hn::MulAdd(w, row[v], sum[s][v]);
    }
  }

  /// Adds a row that completes an output, `done`, and begins another: the sums
  /// move on by one.
  HWY_INLINE void add_and_move(const S* in, const A* taps, Vec<A> (&done)[NV]) {
    Vec<A> row[NV];
    read(in, row);
    const auto last = tap(taps, kSums), first = tap(taps, 0);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      done[v] = hn::MulAdd(last, row[v], sum[0][v]);
#pragma GCC unroll 32
    for (int s = 1; s < kSums; ++s) {
      const auto w = tap(taps, kSums - s);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        sum[s - 1][v] = hn::MulAdd(w, row[v], sum[s][v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum[kSums - 1][v] = hn::Mul(first, row[v]);
  }
};

/// Where rolling sums are: the next row, its taps and the next output.
template <class S, class A>
struct RollingPlace {
  const S* in;
  const A* taps;
  S* out;
  int64_t in_step, tap_step, out_step;
  int64_t first, last;  ///< rows that exist, from the next one
  const A* bias;
  bool streaming;
  PrefetchRows next_rows;

  HWY_INLINE bool exists() const { return first <= 0 && last > 0; }
  HWY_INLINE void next_row() {
    in += in_step;
    taps += tap_step;
    --first;
    --last;
  }
  template <int NV>
  HWY_INLINE void finish(const Vec<A> (&done)[NV]) {
    Vec<A> y[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      y[v] = hn::Add(done[v], load_beside_channels<S, NV>(bias, v));
    constexpr int kShares = kSharing<S, NV>;
#pragma GCC unroll 4
    for (int v = 0; v < NV; v += kShares)
      store_channels<kShares>(y + v, out + v * kLanes<A>, streaming);
    out += out_step;
    next_rows.next_row<NV * kLanes<A>* int{sizeof(S)} / kCacheLine>();
  }
};

/// Rows before the first one that completes an output: row kRow begins output
/// kRow.
template <int kRow, class Sums, class Place>
HWY_INLINE void roll_in(Sums& sums, Place& at) {
  if constexpr (kRow < Sums::kSums) {
    if (HWY_LIKELY(at.exists()))
      sums.template add<0, kRow, kRow>(at.in, at.taps);
    at.next_row();
    roll_in<kRow + 1>(sums, at);
  }
}

/// Rows behind those that begin outputs: row kRow is the last of sum kRow.
template <int kRow, class Sums, class Place>
HWY_INLINE void roll_out(Sums& sums, Place& at) {
  constexpr int kSums = Sums::kSums;
  if constexpr (kRow < kSums) {
    if (HWY_LIKELY(at.exists()))
      sums.template add<kRow, kSums - 1, kSums + kRow>(at.in, at.taps);
    at.finish(sums.sum[kRow]);
    at.next_row();
    roll_out<kRow + 1>(sums, at);
  }
}

/// The share of `width` channels from c in what a tile of one head
/// prefetches.
template <class S, class A>
PrefetchRows
next_columns(const ConvTile<S, A>& tile, int64_t c, int64_t width) {
  const int64_t parts = tile.channels < width ? 1 : tile.channels / width;
  const int64_t part = c / width;
  return tile.next_rows == nullptr || part >= parts
      ? PrefetchRows()
      : tile.next_rows->part(part, parts);
}

/// All outputs of NV vectors from channel c; K-1 rows or more.
template <class S, class A, int K, int NV>
void roll_column(const ConvTile<S, A>& tile, int64_t c) {
  static constexpr A kNoBias[NV * kLanes<A>] = {};
  RollingSums<S, A, K, NV> sums;
  RollingPlace<S, A> at = {
      .in = tile.in + c,
      .taps = tile.taps,
      .out = tile.out + c,
      .in_step = tile.in_stride,
      .tap_step = tile.tap_t + tile.tap_r,
      .out_step = tile.out_stride,
      .first = tile.first,
      .last = tile.last,
      .bias = tile.bias != nullptr ? tile.bias + c : kNoBias,
      .streaming = tile.streaming,
      .next_rows = next_columns(tile, c, NV * kLanes<A>)};
  roll_in<0>(sums, at);
  for (int64_t left = tile.rows - (K - 1); left > 0; --left) {
    Vec<A> done[NV];
    sums.add_and_move(at.in, at.taps, done);
    at.finish(done);
    at.next_row();
  }
  roll_out<0>(sums, at);
}

/// As many channels as whole vectors hold; returns how many.
template <class S, class A, int K>
HWY_INLINE int64_t roll_columns(const ConvTile<S, A>& tile) {
  constexpr int NV = kRollingVectors<K>;
  int64_t c = 0;
  for (; c + NV * kLanes<A> <= tile.channels; c += NV * kLanes<A>)
    roll_column<S, A, K, NV>(tile, c);
  for (; c + kLanes<A> <= tile.channels; c += kLanes<A>)
    roll_column<S, A, K, 1>(tile, c);
  return c;
}

template <class S, class A, int K>
HWY_INLINE int64_t roll(const ConvTile<S, A>& tile) {
  constexpr bool kFits = kRollingVectors<K> != 0;
  if constexpr (kFits) {
    // Not for a few rows, of which most begin or end outputs. Those that feed K
    // outputs must exist. Taps of a row lie from the last to the first.
    if (tile.heads == 1 && tile.tap_t == 1 && tile.rows >= 2 * (K - 1) &&
        tile.first <= K - 1 && tile.last >= tile.rows)
      return roll_columns<S, A, K>(tile);
  }
  return 0;
}

/// Convolves as many channels of a single head as it can, the first ones;
/// returns how many.
template <class S, class A>
HWY_INLINE int64_t roll_few_taps(const ConvTile<S, A>& tile) {
  switch (tile.kernel_size) {
    case 3:
      return roll<S, A, 3>(tile);
    case 5:
      return roll<S, A, 5>(tile);
    case 7:
      return roll<S, A, 7>(tile);
    case 15:
      return roll<S, A, 15>(tile);
    default:
      return 0;
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
