#if defined(SEQCONV_KERNELS_SHARED_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_SHARED_PRODUCTS_INL_H
#undef SEQCONV_KERNELS_SHARED_PRODUCTS_INL_H
#else
#define SEQCONV_KERNELS_SHARED_PRODUCTS_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Gradients of taps that all rows share: products of rows of the output's
/// gradient with rows of the input, added up over the rows.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// What comes next, with the products of so many rows.
template <int kRows, class S, class A>
HWY_INLINE void prefetch_lines(const ProductTile<S, A>& tile) {
  for (int i = 0; tile.next_rows != nullptr && i < kRows; ++i)
    tile.next_rows->template next_row<kLinesOfRow<S>>();
}

/// acc[..][j] += g[t] * x[t + j], lane by lane, in channels [c, c + lanes), for
/// NT rows and NJ taps: every row of x is read once for all rows of g. The rows
/// add to NA sets of sums in turns.
template <class S, class A, int NT, int NJ, bool kTail, int NA>
HWY_INLINE void add_lane_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    int64_t c,
    Vec<A> (&acc)[NA][NJ]) {
  Vec<A> grad[NT];
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i) {
    const S* const g = tile.g + (t + i) * tile.g_stride + c;
    grad[i] = kTail ? load_some<A>(g, tile.channels - c) : load_wide(g);
  }
  // A pointer that moves on: g++ would keep one to every row, on the stack.
  const A* x = tile.x + (t + j) * tile.x_stride + c;
#pragma GCC unroll 24
  for (int r = 0; r < NT + NJ - 1; ++r) {
    const Vec<A> row = in_register(load(x));
    x = scalar(x + tile.x_stride);
#pragma GCC unroll 8
    for (int i = 0; i < NT; ++i)
      if (r - i >= 0 && r - i < NJ)
        acc[i % NA][r - i] = hn::MulAdd(grad[i], row, acc[i % NA][r - i]);
  }
}

/// The same in all channels.
template <class S, class A, int NT, int NJ, int NA>
HWY_INLINE void add_all_lane_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    Vec<A> (&acc)[NA][NJ]) {
  int64_t c = 0;
  for (; c + kLanes<A> <= tile.channels; c += kLanes<A>)
    add_lane_products<S, A, NT, NJ, false>(tile, t, j, c, acc);
  if (c < tile.channels)
    add_lane_products<S, A, NT, NJ, true>(tile, t, j, c, acc);
}

/// Sets of sums of NJ taps, as many as registers hold: a sum waits for the one
/// before, and few of them would leave the multipliers idle.
constexpr int sets_of_sums(int NJ) {
  if (kRegisters == 32)
    return NJ > 8 ? 1 : NJ > 4 ? 2 : 4;
  return NJ > 4 ? 1 : 2;
}

/// sums[k] = the products of tap j + k, lane by lane. Row by row: a column of
/// one vector would read a line here and a line there.
template <class S, class A, int NJ>
HWY_INLINE void
sum_products(const ProductTile<S, A>& tile, int64_t j, Vec<A> (&sums)[NJ]) {
  constexpr int kRows = 4, kSets = sets_of_sums(NJ);
  Vec<A> acc[kSets][NJ];
#pragma GCC unroll 4
  for (int i = 0; i < kSets; ++i)
#pragma GCC unroll 16
    for (int k = 0; k < NJ; ++k)
      acc[i][k] = hn::Zero(Tag<A>());
  int64_t t = 0;
  for (; t + kRows <= tile.rows; t += kRows) {
    prefetch_lines<kRows>(tile);
    add_all_lane_products<S, A, kRows, NJ>(tile, t, j, acc);
  }
  for (; t < tile.rows; ++t)
    add_all_lane_products<S, A, 1, NJ>(tile, t, j, acc);
#pragma GCC unroll 16
  for (int k = 0; k < NJ; ++k) {
    sums[k] = acc[0][k];
#pragma GCC unroll 4
    for (int i = 1; i < kSets; ++i)
      sums[k] = hn::Add(sums[k], acc[i][k]);
  }
}

/// `count` of NJ taps, added to sums[j], ...
template <class S, class A, int NJ>
HWY_INLINE void shared_products(
    const ProductTile<S, A>& tile,
    int64_t j,
    int64_t count,
    double* sums) {
  Vec<A> products[NJ];
  sum_products<S, A, NJ>(tile, j, products);
  for (int k = 0; k < count; ++k)
    sums[j + k] += static_cast<double>(lane_sum(products[k]));
}

/// The same with sums [K, channels].
template <class S, class A, int NJ>
HWY_INLINE void lane_products(
    const ProductTile<S, A>& tile,
    int64_t j,
    int64_t count,
    double* sums) {
  const int64_t C = tile.channels;
  for (int64_t c = 0; c < C; c += kLanes<A>) {
    ProductTile<S, A> column = tile;
    column.g += c;
    column.x += c;
    column.channels = HWY_MIN(C - c, int64_t{kLanes<A>});
    Vec<A> products[NJ];
    sum_products<S, A, NJ>(column, j, products);
    HWY_ALIGN A lanes[kLanes<A>];
    for (int k = 0; k < count; ++k) {
      hn::Store(products[k], Tag<A>(), lanes);
      for (int64_t i = 0; i < column.channels; ++i)
        sums[(j + k) * C + c + i] += static_cast<double>(lanes[i]);
    }
  }
}

/// Calls each.operator()<NJ>(j, count) for `count` taps from j on, many at a
/// time, until all K had their turn. NJ may be more: products that nobody asked
/// for take less time than another turn. Rows of x reach to tap_pitch(K).
template <class Each>
HWY_INLINE void for_taps(int64_t K, const Each& each) {
  int64_t j = 0;
  if constexpr (kRegisters == 32) {
    for (; j + 16 <= K; j += 16)
      each.template operator()<16>(j, 16);
    if (K - j >= 11)
      return each.template operator()<15>(j, K - j);
  }
  for (; j + 8 <= K; j += 8)
    each.template operator()<8>(j, 8);
  if (K > 4 && K - j >= 4)
    return each.template operator()<7>(j, K - j);
  if (K - j >= 3) {
    each.template operator()<3>(j, 3);
    j += 3;
  }
  for (; j < K; ++j)
    each.template operator()<1>(j, 1);
}

template <class S, class A>
void shared_tap_products(const ProductTile<S, A>& tile, double* sums) {
  for_taps(tile.kernel_size, [&]<int NJ>(int64_t j, int64_t count) HWY_ATTR {
    shared_products<S, A, NJ>(tile, j, count, sums);
  });
}

template <class S, class A>
void lane_tap_products(const ProductTile<S, A>& tile, double* sums) {
  for_taps(tile.kernel_size, [&]<int NJ>(int64_t j, int64_t count) HWY_ATTR {
    lane_products<S, A, NJ>(tile, j, count, sums);
  });
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
