#if defined(SEQCONV_KERNELS_CONVOLVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CONVOLVE_INL_H
#undef SEQCONV_KERNELS_CONVOLVE_INL_H
#else
#define SEQCONV_KERNELS_CONVOLVE_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/common/channels-inl.h"
#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/conv/rolling-inl.h"

/// Convolution: a few rows of all heads, then the next few rows. Tensors are
/// walked through from left to right, as their memory lies.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Vectors (channels) of NT rows of sums that are kept in registers.
template <int NT>
inline constexpr int kVectorBlock = (kRegisters == 32 ? 4 : 2) /
    (NT == kTallBlock ? 2 : 1);

/// Which taps lie one after another: those of an input row for the channels, or
/// for the outputs (tap_t is 1), or those of an output for the rows (tap_r is
/// 1).
enum class TapOrder { kChannels, kOutputs, kRows };

/// The sums of NT outputs of NV vectors, or of one of `tail` channels, and
/// where the next input row and its taps are. Every output adds up its taps in
/// ascending order whatever NT is, so that results do not depend on where a
/// block begins.
template <class S, class A, int NT, int NV, bool kTail, TapOrder kOrder>
struct ConvBlock {
  static_assert(!kTail || NV == 1);
  static constexpr int L = kLanes<A>;
  static constexpr bool kLaneTaps = kOrder == TapOrder::kChannels;
  /// As load_channels() takes them; taps of channels are in order.
  static constexpr int kTogether = kLaneTaps ? 1 : NV;

  const S* in;
  int64_t in_stride;
  // Two pointers to taps, not one for every output: registers are few.
  const A* low;   ///< taps of the first half of the outputs
  const A* high;  ///< taps of the second half
  int64_t tap_t, tap_r;
  int64_t tail;
  Vec<A> sum[NT][NV];

  HWY_INLINE ConvBlock(
      const ConvTile<S, A>& tile,
      int64_t t,
      int64_t c,
      const A* taps,
      int64_t tail)
      : in(tile.in + t * tile.in_stride + c),
        in_stride(tile.in_stride),
        low(taps + t * (tile.tap_t + tile.tap_r)),
        high(low + NT / 2 * tile.tap_t),
        tap_t(tile.tap_t),
        tap_r(tile.tap_r),
        tail(tail) {
#pragma GCC unroll 12
    for (int i = 0; i < NT; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        sum[i][v] = hn::Zero(Tag<A>());
  }

  /// Adds the next input row to outputs first .. last.
  HWY_INLINE void add_row(int first, int last) {
    Vec<A> row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      row[v] = in_register(
          kTail ? load_some<A>(in, tail) : load_channels<kTogether>(in, v));
#pragma GCC unroll 12
    for (int i = 0; i < NT; ++i)
      if (i >= first && i <= last)
        add_product(tap(i), row, sum[i]);
  }

  /// Adds rows that feed all outputs.
  HWY_INLINE void add_rows(int64_t count) {
    for (; count > 0; --count) {
      add_row(0, NT - 1);
      next_row();
    }
  }

  HWY_INLINE void next_row() {
    skip_rows(1);
    low = scalar(low);
    if (kOrder != TapOrder::kOutputs)
      high = scalar(high);
  }
  HWY_INLINE void skip_rows(int64_t count) {
    const int64_t taps = kOrder == TapOrder::kRows ? count : count * tap_r;
    in += count * in_stride;
    low += taps;
    high += taps;
  }

 private:
  /// The next row's tap for output i.
  HWY_INLINE const A* tap(int i) const {
    if (kOrder == TapOrder::kOutputs)
      return low + i;
    return i < NT / 2 ? low + i * tap_t : high + (i - NT / 2) * tap_t;
  }
  HWY_INLINE void
  add_product(const A* tap, const Vec<A> (&row)[NV], Vec<A> (&to)[NV]) const {
    const Tag<A> d;
    Vec<A> w = kLaneTaps ? hn::Zero(d) : in_register(hn::Set(d, *tap));
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      if (kLaneTaps)
        w = kTail ? load_some<A>(tap, tail) : load(tap + v * L);
      to[v] = hn::MulAdd(w, row[v], to[v]);
    }
  }
};

/// Sums -> outputs from row t and channel c. With as few instructions as it
/// takes: those of the next block have to come through behind them.
template <class S, class A, int NT, int NV, bool kTail, TapOrder kOrder>
HWY_INLINE void finish_block(
    ConvBlock<S, A, NT, NV, kTail, kOrder>& block,
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c) {
  constexpr int kTogether = block.kTogether, kShares = kSharing<S, kTogether>;
  const int64_t stride = tile.out_stride;
  S* out = tile.out + t * stride + c;
  if (tile.bias != nullptr)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto bias = kTail
          ? load_some<A>(tile.bias + c, block.tail)
          : load_beside_channels<S, kTogether>(tile.bias + c, v);
#pragma GCC unroll 12
      for (int i = 0; i < NT; ++i)
        block.sum[i][v] = hn::Add(block.sum[i][v], bias);
    }
  const bool streaming = tile.streaming;
#pragma GCC unroll 12
  for (int i = 0; i < NT; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; v += kShares) {
      const Vec<A>* const sums = block.sum[i] + v;
      S* const y = out + v * kLanes<A>;
      if (kTail)
        store_some<A>(*sums, y, block.tail);
      else
        store_channels<kShares>(sums, y, streaming);
    }
    // A pointer that moves on: g++ would keep all of them in memory.
    out = scalar(out + stride);
  }
}

/// What is prefetched while a block is convolved: the rows of `in` that the
/// next outputs see, and as many times `lines` lines.
struct BlockPrefetch {
  const char* in;
  int64_t in_stride;  ///< bytes
  const char* soon;
  int64_t lines;

  /// Of the block of `rows` rows from t and of channels from c of head h.
  template <class S, class A>
  HWY_INLINE BlockPrefetch(
      const ConvTile<S, A>& tile,
      int64_t t,
      int64_t rows,
      int64_t h,
      int64_t c)
      : in(reinterpret_cast<const char*>(
            tile.in + (t + rows + tile.kernel_size - 1) * tile.in_stride + c)),
        in_stride(tile.in_stride * int64_t{sizeof(S)}),
        soon(tile.prefetch.lines),
        // The first block of a head prefetches for the others.
        lines(c == h * tile.channels ? tile.prefetch.lines_of_row : 0) {
    soon += (t * tile.heads + h * rows) * lines * kCacheLine;
  }

  /// A row of kBytes, and lines.
  template <int kBytes>
  HWY_INLINE void next_row() {
    // Before it is read the first-level cache sees the rows of all heads.
    prefetch_lines<OwnCache::kSecond>(in, kBytes);
    in += in_stride;
    prefetch_lines(soon, lines * kCacheLine);
    soon += lines * kCacheLine;
  }
};

/// Adds `count` rows, which feed all outputs of a block, and calls
/// prefetch_row() NT times between them: many lines prefetched at once would
/// wait for one another.
template <
    class S,
    class A,
    int NT,
    int NV,
    bool kTail,
    TapOrder kOrder,
    class F>
HWY_INLINE void add_rows_and_prefetch(
    ConvBlock<S, A, NT, NV, kTail, kOrder>& block,
    int64_t count,
    const F& prefetch_row) {
  const int64_t together = count / NT;
  for (int i = 0; i < NT; ++i) {
    prefetch_row();
    block.add_rows(together);
  }
  block.add_rows(count - together * NT);
}

/// The rows of a block that feed all of its outputs, and what is prefetched
/// between them; h and c as in convolve_block().
template <class S, class A, int NT, int NV, bool kTail, TapOrder kOrder>
HWY_INLINE void add_middle_rows(
    ConvBlock<S, A, NT, NV, kTail, kOrder>& block,
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c,
    int64_t h,
    int64_t count) {
  // Few taps, of which fewer rows are made, make no pause that is worth it.
  if (NT >= kRowBlock && tile.prefetch.in) {
    BlockPrefetch rows(tile, t, NT, h, c);
    add_rows_and_prefetch(block, count, [&] {
      rows.next_row<NV * kLanes<A>* int{sizeof(S)}>();
    });
  } else if (tile.next_rows != nullptr && c == h * tile.channels) {
    add_rows_and_prefetch(block, count, [&] {
      tile.next_rows->template next_row<kLinesOfRow<S>>();
    });
  } else {
    block.add_rows(count);
  }
}

/// NT outputs of NV vectors from row t and channel c, which is one of head h;
/// K >= NT - 1. kInside: all rows exist; else those outside the sequence are
/// skipped.
template <
    class S,
    class A,
    int NT,
    int NV,
    bool kTail,
    TapOrder kOrder,
    bool kInside>
HWY_INLINE void convolve_block(
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c,
    const A* taps,
    int64_t h,
    int64_t tail = kLanes<A>) {
  const int64_t K = tile.kernel_size;
  ConvBlock<S, A, NT, NV, kTail, kOrder> block(tile, t, c, taps, tail);
  const int64_t low = kInside ? 0 : tile.first - t;
  const int64_t high = kInside ? K + NT : tile.last - t;
#pragma GCC unroll 12
  for (int r = 0; r < NT - 1; ++r) {
    if (kInside || (r >= low && r < high))
      block.add_row(0, r);
    block.next_row();
  }
  const int64_t begin = HWY_MIN(K, HWY_MAX(int64_t{NT - 1}, low));
  const int64_t end = HWY_MAX(begin, HWY_MIN(K, high));
  if (!kInside)
    block.skip_rows(begin - (NT - 1));
  add_middle_rows(block, tile, t, c, h, end - begin);
  if (!kInside)
    block.skip_rows(K - end);
#pragma GCC unroll 12
  for (int e = 0; e < NT - 1; ++e) {
    if (kInside || (K + e >= low && K + e < high))
      block.add_row(e + 1, NT - 1);
    block.next_row();
  }
  finish_block(block, tile, t, c);
}

/// NT rows of all heads, each from channel `from` on: whole blocks of vectors,
/// pairs, vectors, and what is left of one.
template <class S, class A, int NT, TapOrder kOrder>
void convolve_rows(const ConvTile<S, A>& tile, int64_t t, int64_t from) {
  constexpr int NV = kVectorBlock<NT>;
  constexpr int64_t L = kLanes<A>, kBlock = NV * L, kPair = 2 * L;
  constexpr bool kLaneTaps = kOrder == TapOrder::kChannels;
  const bool inside =
      t >= tile.first && t + NT + tile.kernel_size - 1 <= tile.last;
  for (int64_t h = 0; h < tile.heads; ++h) {
    int64_t c = h * tile.channels + from;
    const int64_t end = (h + 1) * tile.channels;
    const A* taps = tile.taps + h * tile.head_stride;
    const auto lane_taps = [&] { return kLaneTaps ? taps + c : taps; };
    // Most blocks are wide ones: only they have a form without questions.
    if (!kLaneTaps && inside)
      for (; c + kBlock <= end; c += kBlock)
        convolve_block<S, A, NT, NV, false, kOrder, !kLaneTaps>(
            tile,
            t,
            c,
            taps,
            h);
    for (; c + kBlock <= end; c += kBlock)
      convolve_block<S, A, NT, NV, false, kOrder, false>(
          tile,
          t,
          c,
          lane_taps(),
          h);
    if constexpr (NV > 2)
      for (; c + kPair <= end; c += kPair)
        convolve_block<S, A, NT, 2, false, kOrder, false>(
            tile,
            t,
            c,
            lane_taps(),
            h);
    for (; c + L <= end; c += L)
      convolve_block<S, A, NT, 1, false, kOrder, false>(
          tile,
          t,
          c,
          lane_taps(),
          h);
    if (c < end)
      convolve_block<S, A, NT, 1, true, kOrder, false>(
          tile,
          t,
          c,
          lane_taps(),
          h,
          end - c);
  }
}

/// Whole rows that one output sees have left the first-level cache when the
/// next block reads them: tall blocks do so half as often. Fewer taps would
/// hide less than the first and last rows of such a block cost.
template <class S, class A>
bool wants_tall_blocks(const ConvTile<S, A>& tile) {
  return tile.prefetch.in && tile.kernel_size >= 2 * kTallBlock;
}

template <class S, class A, TapOrder kOrder>
HWY_INLINE void convolve_all(const ConvTile<S, A>& tile, int64_t from) {
  if (from == tile.channels)
    return;
  int64_t t = 0;
  if constexpr (kRegisters == 32 && kOrder != TapOrder::kChannels)
    if (wants_tall_blocks(tile))
      for (; t + kTallBlock <= tile.rows; t += kTallBlock)
        convolve_rows<S, A, kTallBlock, kOrder>(tile, t, from);
  if (tile.kernel_size >= kRowBlock - 1)
    for (; t + kRowBlock <= tile.rows; t += kRowBlock)
      convolve_rows<S, A, kRowBlock, kOrder>(tile, t, from);
  if (tile.kernel_size >= 3)
    for (; t + 4 <= tile.rows; t += 4)
      convolve_rows<S, A, 4, kOrder>(tile, t, from);
  for (; t + 2 <= tile.rows; t += 2)
    convolve_rows<S, A, 2, kOrder>(tile, t, from);
  for (; t < tile.rows; ++t)
    convolve_rows<S, A, 1, kOrder>(tile, t, from);
}

template <class S, class A>
void convolve(const ConvTile<S, A>& tile) {
  if (tile.lane_taps)
    convolve_all<S, A, TapOrder::kChannels>(tile, 0);
  else if (tile.tap_t == 1)
    convolve_all<S, A, TapOrder::kOutputs>(tile, roll_few_taps(tile));
  else
    convolve_all<S, A, TapOrder::kRows>(tile, roll_few_taps(tile));
  if (tile.streaming)
    hwy::FlushStream();
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
