#if defined(SEQCONV_KERNELS_CONVOLVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CONVOLVE_INL_H
#undef SEQCONV_KERNELS_CONVOLVE_INL_H
#else
#define SEQCONV_KERNELS_CONVOLVE_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Rows (time) x vectors (channels) of sums kept in registers.
inline constexpr int kRowBlock = 6;
inline constexpr int kVectorBlock = kRegisters == 32 ? 4 : 2;

/// NT outputs of NV vectors, the last of which holds `tail` channels, beginning
/// at output t and channel c. Every output adds up its taps in ascending order
/// whatever NT is, so that results do not depend on where a block begins. With
/// kTaps > 0 that is K and all rows exist; else K >= NT - 1.
template <
    class S,
    class A,
    int NT,
    int NV,
    bool kTail,
    bool kLaneTaps,
    int kTaps>
HWY_INLINE void
convolve_block(const ConvTile<S, A>& tile, int64_t t, int64_t c) {
  constexpr int L = kLanes<A>;
  const Tag<A> d;
  const int64_t tail = kTail ? tile.channels - c - (NV - 1) * L : L;
  const int64_t K = tile.kernel_size;
  const S* const in = tile.in + t * tile.in_stride + c;
  const A* const taps =
      tile.taps + t * (tile.tap_t + tile.tap_r) + (kLaneTaps ? c : 0);
  Vec<A> acc[NT][NV];
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      acc[i][v] = hn::Zero(d);
// Input row r of the block, which feeds its outputs FIRST .. LAST.
#define SEQCONV_ADD_ROW(r, FIRST, LAST)                                     \
  {                                                                         \
    Vec<A> row[NV];                                                         \
    _Pragma("GCC unroll 4") for (int v = 0; v < NV; ++v) row[v] =           \
        kTail && v == NV - 1                                                \
        ? load_some<A>(in + (r)*tile.in_stride + v * L, tail)               \
        : load_wide(in + (r)*tile.in_stride + v * L);                       \
    _Pragma("GCC unroll 8") for (int i = 0; i < NT;                         \
                                 ++i) if (i >= (FIRST) && i <= (LAST)) {    \
      const A* const tap = taps + i * tile.tap_t + (r)*tile.tap_r;          \
      _Pragma("GCC unroll 4") for (int v = 0; v < NV; ++v) acc[i][v] =      \
          hn::MulAdd(                                                       \
              kLaneTaps                                                     \
                  ? (kTail && v == NV - 1 ? load_some<A>(tap + v * L, tail) \
                                          : load(tap + v * L))              \
                  : hn::Set(d, *tap),                                       \
              row[v],                                                       \
              acc[i][v]);                                                   \
    }                                                                       \
  }
  if constexpr (kTaps > 0) {
#pragma GCC unroll 16
    for (int r = 0; r < kTaps + NT - 1; ++r)
      SEQCONV_ADD_ROW(r, r - kTaps + 1, r)
  } else {
    // Rows outside the sequence are skipped: they count as zero.
    const int64_t low = tile.first - t, high = tile.last - t;
#pragma GCC unroll 8
    for (int r = 0; r < NT - 1; ++r)
      if (r >= low && r < high)
        SEQCONV_ADD_ROW(r, 0, r)
    const int64_t end = HWY_MIN(K, high);
    for (int64_t r = HWY_MAX(int64_t{NT - 1}, low); r < end; ++r)
      SEQCONV_ADD_ROW(r, 0, NT - 1)
#pragma GCC unroll 8
    for (int e = 0; e < NT - 1; ++e)
      if (K + e >= low && K + e < high)
        SEQCONV_ADD_ROW(K + e, e + 1, NT - 1)
  }
#undef SEQCONV_ADD_ROW
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i) {
    S* const out = tile.out + (t + i) * tile.out_stride + c;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      Vec<A> y = acc[i][v];
      const bool partial = kTail && v == NV - 1;
      if (tile.scale != nullptr)
        y = hn::Mul(y, hn::Set(d, tile.scale[(t + i) * tile.scale_stride]));
      if (tile.bias != nullptr) {
        const A* const bias = tile.bias + c + v * L;
        y = hn::Add(y, partial ? load_some<A>(bias, tail) : load(bias));
      }
      if (partial)
        store_some<A>(y, out + v * L, tail);
      else if (tile.streaming)
        store_streaming(y, out + v * L);
      else
        store_narrow(y, out + v * L);
    }
  }
}

/// What the tile `ahead` will need when it comes to rows [t, t + count): rows
/// before them are left over from the tile above that one.
/// A function of its own: inside the loops it costs them registers. A function
/// that only prefetches has no effect as g++ sees it, and would not be called.
template <class S, class A>
HWY_NOINLINE void
prefetch_ahead(const ConvTile<S, A>& tile, int64_t t, int64_t c, int count) {
  constexpr int64_t kWidth = kVectorBlock * kLanes<A>;
  for (int64_t i = t; i < t + count; ++i) {
    const int64_t edge = i + tile.kernel_size - 1;
    prefetch_lines(tile.in + edge * tile.in_stride + tile.ahead + c, kWidth);
    if (!tile.streaming)
      prefetch_lines_to_write(
          tile.out + i * tile.out_stride + tile.ahead + c,
          kWidth);
  }
  asm volatile("");
}

template <class S, class A, int NV, bool kTail, bool kLaneTaps, int kTaps>
HWY_INLINE void convolve_columns(const ConvTile<S, A>& tile, int64_t c) {
  constexpr int NT = kRowBlock;
  int64_t t = 0;
  if constexpr (kTaps > 0) {
    // Near the ends of the sequence: one by one.
    for (; t < tile.rows && t < tile.first; ++t)
      convolve_block<S, A, 1, NV, kTail, kLaneTaps, 0>(tile, t, c);
    const int64_t end = HWY_MIN(tile.rows, tile.last - kTaps + 1);
    for (; t + NT <= end; t += NT) {
      if (tile.ahead != 0)
        prefetch_ahead(tile, t, c, NT);
      convolve_block<S, A, NT, NV, kTail, kLaneTaps, kTaps>(tile, t, c);
    }
  } else {
    if (tile.kernel_size >= NT)
      for (; t + NT <= tile.rows; t += NT) {
        if (tile.ahead != 0)
          prefetch_ahead(tile, t, c, NT);
        convolve_block<S, A, NT, NV, kTail, kLaneTaps, 0>(tile, t, c);
      }
    if (tile.kernel_size >= 3)
      for (; t + 4 <= tile.rows; t += 4)
        convolve_block<S, A, 4, NV, kTail, kLaneTaps, 0>(tile, t, c);
  }
  for (; t < tile.rows; ++t)
    convolve_block<S, A, 1, NV, kTail, kLaneTaps, 0>(tile, t, c);
}

template <class S, class A, bool kLaneTaps, int kTaps>
HWY_INLINE void convolve_any(const ConvTile<S, A>& tile) {
  constexpr int64_t L = kLanes<A>, kBlock = kVectorBlock * L;
  int64_t c = 0;
  for (; c + kBlock <= tile.channels; c += kBlock)
    convolve_columns<S, A, kVectorBlock, false, kLaneTaps, kTaps>(tile, c);
  for (; c + L <= tile.channels; c += L)
    convolve_columns<S, A, 1, false, kLaneTaps, 0>(tile, c);
  if (c < tile.channels)
    convolve_columns<S, A, 1, true, kLaneTaps, 0>(tile, c);
}

template <class S, class A>
void convolve(const ConvTile<S, A>& tile) {
  if (tile.lane_taps)
    convolve_any<S, A, true, 0>(tile);
  else if (tile.kernel_size == 3)
    convolve_any<S, A, false, 3>(tile);
  else if (tile.kernel_size == 5)
    convolve_any<S, A, false, 5>(tile);
  else if (tile.kernel_size == 7)
    convolve_any<S, A, false, 7>(tile);
  else
    convolve_any<S, A, false, 0>(tile);
  if (tile.streaming)
    hwy::FlushStream();
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
