#if defined(SEQCONV_KERNELS_CONVOLVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CONVOLVE_INL_H
#undef SEQCONV_KERNELS_CONVOLVE_INL_H
#else
#define SEQCONV_KERNELS_CONVOLVE_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/rolling-inl.h"
#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Rows (time) x vectors (channels) of sums kept in registers.
inline constexpr int kRowBlock = 6;
inline constexpr int kVectorBlock = kRegisters == 32 ? 4 : 2;

/// Hides from g++ what is known about two pointers, lest it makes many of them.
template <class A>
HWY_INLINE void keep_pointers(const A*& a, const A*& b) {
#if HWY_COMPILER_GCC
  asm("" : "+r"(a), "+r"(b));
#endif
}

/// Sums -> outputs. With as few instructions as it takes: those of the next
/// block have to come through behind them.
template <class S, class A, int NT, int NV, bool kTail>
HWY_INLINE void finish_block(
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c,
    Vec<A> (&acc)[NT][NV]) {
  constexpr int L = kLanes<A>;
  const int64_t tail = kTail ? tile.channels - c - (NV - 1) * L : L;
  const int64_t stride = tile.out_stride;
  S* const out = tile.out + t * stride + c;
  if (tile.bias != nullptr)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto bias =
          load_some<A>(tile.bias + c + v * L, kTail && v == NV - 1 ? tail : L);
#pragma GCC unroll 8
      for (int i = 0; i < NT; ++i)
        acc[i][v] = hn::Add(acc[i][v], bias);
    }
  const bool streaming = !kTail && tile.streaming;
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      S* const y = out + i * stride + v * L;
      if (kTail && v == NV - 1)
        store_some<A>(acc[i][v], y, tail);
      else if (streaming)
        store_streaming(acc[i][v], y);
      else
        store_narrow(acc[i][v], y);
    }
}

/// NT outputs of NV vectors, the last of which holds `tail` channels, beginning
/// at output t and channel c. Every output adds up its taps in ascending order
/// whatever NT is, so that results do not depend on where a block begins.
/// K >= NT - 1; kInside: all rows exist.
template <
    class S,
    class A,
    int NT,
    int NV,
    bool kTail,
    bool kLaneTaps,
    bool kInside>
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
#define SEQCONV_ADD_ROW_AT(r, TAPS, FIRST, LAST)                          \
  {                                                                       \
    Vec<A> row[NV];                                                       \
    _Pragma("GCC unroll 4") for (int v = 0; v < NV; ++v) row[v] =         \
        kTail && v == NV - 1                                              \
        ? load_some<A>(in + (r)*tile.in_stride + v * L, tail)             \
        : load_wide(in + (r)*tile.in_stride + v * L);                     \
    _Pragma("GCC unroll 8") for (int i = 0; i < NT;                       \
                                 ++i) if (i >= (FIRST) && i <= (LAST)) {  \
      const A* const tap = TAPS;                                          \
      Vec<A> w = kLaneTaps ? hn::Zero(d) : in_register(hn::Set(d, *tap)); \
      _Pragma("GCC unroll 4") for (int v = 0; v < NV; ++v) {              \
        if (kLaneTaps)                                                    \
          w = kTail && v == NV - 1 ? load_some<A>(tap + v * L, tail)      \
                                   : load(tap + v * L);                   \
        acc[i][v] = hn::MulAdd(w, row[v], acc[i][v]);                     \
      }                                                                   \
    }                                                                     \
  }
#define SEQCONV_ADD_ROW(r, FIRST, LAST) \
  SEQCONV_ADD_ROW_AT(r, taps + i * tile.tap_t + (r)*tile.tap_r, FIRST, LAST)
  if constexpr (kInside) {
#pragma GCC unroll 8
    for (int r = 0; r < NT - 1; ++r)
      SEQCONV_ADD_ROW(r, 0, r)
    // Two pointers to taps, not one for every output: registers are few.
    const int64_t tap_t = tile.tap_t, tap_r = tile.tap_r;
    const A* low = taps + (NT - 1) * tap_r;
    const A* high = low + NT / 2 * tap_t;
    for (int64_t r = NT - 1; r < K; ++r, low += tap_r, high += tap_r) {
      keep_pointers(low, high);
      SEQCONV_ADD_ROW_AT(
          r,
          i < NT / 2 ? low + i * tap_t : high + (i - NT / 2) * tap_t,
          0,
          NT - 1)
    }
#pragma GCC unroll 8
    for (int e = 0; e < NT - 1; ++e)
      SEQCONV_ADD_ROW(K + e, e + 1, NT - 1)
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
#undef SEQCONV_ADD_ROW_AT
  finish_block<S, A, NT, NV, kTail>(tile, t, c, acc);
}

template <class S, class A, int NV, bool kTail, bool kLaneTaps>
HWY_INLINE void convolve_columns(const ConvTile<S, A>& tile, int64_t c) {
  constexpr int NT = kRowBlock;
  // Most blocks are wide ones: only they have a form without questions.
  constexpr bool kQuick = NV == kVectorBlock && !kTail && !kLaneTaps;
  // Where there are wide blocks, they fetch everything.
  const bool fetches = NV > 1 || tile.channels < kVectorBlock * kLanes<A>;
  const FetchAhead ahead =
      fetches ? columns_ahead(tile, c, NV * kLanes<A>) : FetchAhead();
  int64_t t = 0;
  if (tile.kernel_size >= NT)
    for (; t + NT <= tile.rows; t += NT) {
      ahead.rows(t, NT);
      const bool inside =
          t >= tile.first && t + NT + tile.kernel_size - 1 <= tile.last;
      if (kQuick && inside)
        convolve_block<S, A, NT, NV, kTail, kLaneTaps, kQuick>(tile, t, c);
      else
        convolve_block<S, A, NT, NV, kTail, kLaneTaps, false>(tile, t, c);
    }
  if (tile.kernel_size >= 3)
    for (; t + 4 <= tile.rows; t += 4)
      convolve_block<S, A, 4, NV, kTail, kLaneTaps, false>(tile, t, c);
  for (; t < tile.rows; ++t)
    convolve_block<S, A, 1, NV, kTail, kLaneTaps, false>(tile, t, c);
}

/// Whole vectors from channel c on, and what is left of one.
template <class S, class A, bool kLaneTaps>
HWY_INLINE void convolve_from(const ConvTile<S, A>& tile, int64_t c) {
  constexpr int64_t L = kLanes<A>, kBlock = kVectorBlock * L;
  for (; c + kBlock <= tile.channels; c += kBlock)
    convolve_columns<S, A, kVectorBlock, false, kLaneTaps>(tile, c);
  for (; c + L <= tile.channels; c += L)
    convolve_columns<S, A, 1, false, kLaneTaps>(tile, c);
  if (c < tile.channels)
    convolve_columns<S, A, 1, true, kLaneTaps>(tile, c);
}

template <class S, class A>
void convolve(const ConvTile<S, A>& tile) {
  if (tile.lane_taps)
    convolve_from<S, A, true>(tile, 0);
  else
    convolve_from<S, A, false>(tile, roll_few_taps(tile));
  if (tile.streaming)
    hwy::FlushStream();
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
