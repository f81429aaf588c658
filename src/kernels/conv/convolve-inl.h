#if defined(SEQCONV_KERNELS_CONVOLVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CONVOLVE_INL_H
#undef SEQCONV_KERNELS_CONVOLVE_INL_H
#else
#define SEQCONV_KERNELS_CONVOLVE_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/common/cache_line.h"
#include "kernels/common/channels-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Convolution: a few rows of all heads, then the next few rows. Tensors are
/// walked through from left to right, as their memory lies.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Vectors (channels) of a row of sums that are kept in registers.
inline constexpr int kVectorBlock = kRegisters == 32 ? 4 : 2;

/// Says how the taps of a block lie: one for all channels of a head, or loaded beside
/// them; and whether others by channel are added.
struct TapForm {
  bool by_channel = false;
  bool added = false;

  /// True if channels are in their order: taps that are loaded are.
  constexpr bool in_order() const { return by_channel || added; }
};

/// The sums of NT outputs of NV vectors, or of one of `tail` channels, and
/// where the next input row and its taps are. Every output adds up its taps in
/// ascending order whatever NT is, so that results do not depend on where a
/// block begins.
template <class S, class A, int NT, int NV, bool kTail, TapForm kForm>
struct ConvBlock {
  static_assert(!kTail || NV == 1);
  static constexpr int L = kLanes<A>;
  /// Vectors that share channels.
  static constexpr int kShares = kForm.in_order() ? 1 : kSharing<S, NV>;

  const S* in;
  int64_t in_stride;
  // Two pointers to taps, not one for every output: registers are few.
  const A* low;   ///< taps of the first half of the outputs
  const A* high;  ///< taps of the second half
  int64_t tap_t, tap_r;
  const A* added;  ///< of the first output
  int64_t added_r;
  int64_t tail;
  int64_t ahead;
  Vec<A> sum[NT][NV];

  HWY_INLINE ConvBlock(
      const ConvTile<S, A>& tile, int64_t t, int64_t c, const A* taps, int64_t tail)
      : in(tile.in + t * tile.in_stride + c),
        in_stride(tile.in_stride),
        low(taps + t * (tile.tap_t + tile.tap_r) + (kForm.by_channel ? c : 0)),
        high(low + NT / 2 * tile.tap_t),
        tap_t(tile.tap_t),
        tap_r(tile.tap_r),
        added(kForm.added ? tile.added + c : nullptr),
        added_r(tile.added_r),
        tail(tail),
        ahead(tile.ahead) {
#pragma GCC unroll 6
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
      row[v] = in_register(load_row(in, v));
#pragma GCC unroll 6
    for (int i = 0; i < NT; ++i)
      if (i >= first && i <= last) {
        if constexpr (kForm.by_channel) {
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v)
            sum[i][v] = hn::MulAdd(load_beside(tap(i), v), row[v], sum[i][v]);
        } else {
          const Vec<A> w = in_register(hn::Set(Tag<A>(), *tap(i)));
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v)
            sum[i][v] = hn::MulAdd(w, row[v], sum[i][v]);
        }
        if constexpr (kForm.added) {
          const A* const w = added - i * added_r;
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v)
            sum[i][v] = hn::MulAdd(load_beside(w, v), row[v], sum[i][v]);
        }
      }
  }

  /// Vector v of the block's channels at p, of a tensor.
  HWY_INLINE Vec<A> load_row(const S* p, int v) const {
    if constexpr (kTail)
      return load_some<A>(p, tail);
    else if constexpr (kForm.in_order())
      return load_wide(p + v * L);
    else
      return load_channels<NV>(p, v);
  }
  /// Vector v of numbers that belong to them.
  HWY_INLINE Vec<A> load_beside(const A* p, int v) const {
    if constexpr (kTail)
      return load_some<A>(p, tail);
    else if constexpr (kForm.in_order())
      return load(p + v * L);
    else
      return load_beside_channels<S, NV>(p, v);
  }

  /// Adds rows that feed all outputs.
  HWY_INLINE void add_rows(int64_t count) {
    for (; count > 0; --count) {
      add_row(0, NT - 1);
      skip_rows(1);
      low = scalar(low);
      high = scalar(high);
    }
  }

  HWY_INLINE void skip_rows(int64_t count) {
    in += count * in_stride;
    low += count * tap_r;
    high += count * tap_r;
    if constexpr (kForm.added)
      added += count * added_r;
  }

  /// What comes after the row before the next one or, with `next`, after that,
  /// one by one: many lines at once would wait for one another. Before they
  /// are read, the first-level cache sees the rows of all heads.
  HWY_INLINE void prefetch(bool next) const {
    if (ahead != 0)
      prefetch_lines<OwnCache::kSecond>(
          in + ahead - (next ? 0 : in_stride), NV * L * int64_t{sizeof(S)});
  }

 private:
  /// The next row's tap for output i.
  HWY_INLINE const A* tap(int i) const {
    return i < NT / 2 ? low + i * tap_t : high + (i - NT / 2) * tap_t;
  }
};

/// Adds sums to those of a tile, or puts them there.
template <class S, class A, int NT, int NV, bool kTail, TapForm kForm>
HWY_INLINE void add_to_sums(
    const ConvBlock<S, A, NT, NV, kTail, kForm>& block,
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c) {
  using Block = ConvBlock<S, A, NT, NV, kTail, kForm>;
  const Tag<A> d;
  for (int i = 0; i < NT; ++i) {
    A* const row = tile.sums + (t + i) * tile.heads * tile.channels + c;
    for (int v = 0; v < NV; v += Block::kShares) {
      A* const to = row + v * kLanes<A>;
      if constexpr (Block::kShares == 2) {
        Vec<A> even = hn::Zero(d), odd = even;
        if (tile.adds)
          hn::LoadInterleaved2(d, to, even, odd);
        even = hn::Add(even, block.sum[i][v]);
        odd = hn::Add(odd, block.sum[i][v + 1]);
        hn::StoreInterleaved2(even, odd, d, to);
      } else {
        const auto before = tile.adds ? load_some<A>(to, block.tail) : hn::Zero(d);
        store_some<A>(hn::Add(before, block.sum[i][v]), to, block.tail);
      }
    }
  }
}

/// Sums -> outputs from row t and channel c. With as few instructions as it
/// takes: those of the next block have to come through behind them.
template <class S, class A, int NT, int NV, bool kTail, TapForm kForm>
HWY_INLINE void finish_block(
    ConvBlock<S, A, NT, NV, kTail, kForm>& block,
    const ConvTile<S, A>& tile,
    int64_t t,
    int64_t c) {
  constexpr int kShares = ConvBlock<S, A, NT, NV, kTail, kForm>::kShares;
  if (HWY_UNLIKELY(tile.sums != nullptr))
    return add_to_sums(block, tile, t, c);
  const int64_t stride = tile.out_stride;
  S* out = tile.out + t * stride + c;
  if (tile.bias != nullptr)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto bias = block.load_beside(tile.bias + c, v);
#pragma GCC unroll 6
      for (int i = 0; i < NT; ++i)
        block.sum[i][v] = hn::Add(block.sum[i][v], bias);
    }
  const bool streaming = tile.streaming;
#pragma GCC unroll 6
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

/// NT outputs of NV vectors from row t and channel c; K >= NT - 1. kInside: all
/// rows exist; else those outside the sequence are skipped.
template <class S, class A, int NT, int NV, bool kTail, bool kInside, TapForm kForm>
HWY_INLINE void convolve_block(
    const ConvTile<S, A>& tile, int64_t t, int64_t c, const A* taps, int64_t tail = kLanes<A>) {
  const int64_t K = tile.kernel_size;
  ConvBlock<S, A, NT, NV, kTail, kForm> block(tile, t, c, taps, tail);
  const int64_t low = kInside ? 0 : tile.first - t;
  const int64_t high = kInside ? K + NT : tile.last - t;
#pragma GCC unroll 6
  for (int r = 0; r < NT - 1; ++r) {
    if (kInside || (r >= low && r < high))
      block.add_row(0, r);
    block.skip_rows(1);
  }
  const int64_t begin = HWY_MIN(K, HWY_MAX(int64_t{NT - 1}, low));
  const int64_t end = HWY_MAX(begin, HWY_MIN(K, high));
  if (!kInside)
    block.skip_rows(begin - (NT - 1));
  block.add_rows(end - begin);
  if (!kInside)
    block.skip_rows(K - end);
  // The block before saw other rows than the last NT.
  block.prefetch(/*next=*/false);
#pragma GCC unroll 6
  for (int e = 0; e < NT - 1; ++e) {
    block.prefetch(/*next=*/true);
    if (kInside || (K + e >= low && K + e < high))
      block.add_row(e + 1, NT - 1);
    block.skip_rows(1);
  }
  finish_block(block, tile, t, c);
}

/// Vectors of a block with taps of a form: sums wait for one another where there
/// are few, and taps that are loaded are not shared by more of them.
constexpr int vector_block(TapForm form) {
  return form.by_channel ? HWY_MIN(2, kVectorBlock) : kVectorBlock;
}

/// NT rows of all heads: whole blocks of vectors, pairs, vectors, and what is
/// left of one.
template <class S, class A, int NT, TapForm kForm>
void convolve_rows(const ConvTile<S, A>& tile, int64_t t) {
  constexpr int NV = vector_block(kForm);
  constexpr int64_t L = kLanes<A>, kBlock = NV * L, kPair = 2 * L;
  const bool inside = t >= tile.first && t + NT + tile.kernel_size - 1 <= tile.last;
  for (int64_t h = 0; h < tile.heads; ++h) {
    int64_t c = h * tile.channels;
    const int64_t end = c + tile.channels;
    const A* const taps = tile.taps + h * tile.head_stride;
    // Most blocks are wide ones: only they have a form without questions.
    if (inside)
      for (; c + kBlock <= end; c += kBlock)
        convolve_block<S, A, NT, NV, false, true, kForm>(tile, t, c, taps);
    for (; c + kBlock <= end; c += kBlock)
      convolve_block<S, A, NT, NV, false, false, kForm>(tile, t, c, taps);
    if constexpr (NV > 2)
      for (; c + kPair <= end; c += kPair)
        convolve_block<S, A, NT, 2, false, false, kForm>(tile, t, c, taps);
    if constexpr (!kForm.in_order())
      for (; c + L <= end; c += L)
        convolve_block<S, A, NT, 1, false, false, kForm>(tile, t, c, taps);
    for (; c < end; c += L)
      convolve_block<S, A, NT, 1, true, false, kForm>(tile, t, c, taps, HWY_MIN(L, end - c));
  }
}

template <TapForm kForm, class S, class A>
void convolve_all(const ConvTile<S, A>& tile) {
  int64_t t = 0;
  // Taps that are loaded take the place of more outputs.
  if constexpr (!kForm.in_order())
    if (tile.kernel_size >= kRowBlock - 1)
      for (; t + kRowBlock <= tile.rows; t += kRowBlock)
        convolve_rows<S, A, kRowBlock, kForm>(tile, t);
  // Old processors are to have few forms.
  if constexpr (!kForm.in_order() || kRegisters == 32 || HWY_TARGET == HWY_AVX2)
    if (tile.kernel_size >= 3)
      for (; t + 4 <= tile.rows; t += 4)
        convolve_rows<S, A, 4, kForm>(tile, t);
  if constexpr (!kForm.in_order())
    for (; t + 2 <= tile.rows; t += 2)
      convolve_rows<S, A, 2, kForm>(tile, t);
  for (; t < tile.rows; ++t)
    convolve_rows<S, A, 1, kForm>(tile, t);
  if (tile.streaming)
    hwy::FlushStream();
}

template <class S, class A>
void convolve(const ConvTile<S, A>& tile) {
  if (tile.added == nullptr)
    tile.by_channel ? convolve_all<TapForm{true, false}>(tile)
                    : convolve_all<TapForm{false, false}>(tile);
  else
    tile.by_channel ? convolve_all<TapForm{true, true}>(tile)
                    : convolve_all<TapForm{false, true}>(tile);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
