#if defined(SEQCONV_KERNELS_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ROWS_INL_H
#undef SEQCONV_KERNELS_ROWS_INL_H
#else
#define SEQCONV_KERNELS_ROWS_INL_H
#endif

#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A>
void widen(const S* src, int64_t count, A* dst) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(load_some<A>(src + i, count - i), dst + i, count - i);
}

template <class S, class A>
void narrow(const A* src, int64_t count, S* dst) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(load_some<A>(src + i, count - i), dst + i, count - i);
}

/// NV whole vectors, or one of `tail` elements.
template <class S, class A, int NV, bool kTail>
HWY_INLINE void weighted_columns(
    const S* src,
    int64_t stride,
    const A* taps,
    int64_t rows,
    A* acc,
    int64_t tail) {
  constexpr int L = kLanes<A>;
  Vec<A> sums[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    sums[v] = kTail ? load_some<A>(acc, tail) : load(acc + v * L);
  for (int64_t i = 0; i < rows; ++i) {
    const auto tap = hn::Set(Tag<A>(), taps[i]);
    const S* const row = src + i * stride;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sums[v] = hn::MulAdd(
          tap,
          kTail ? load_some<A>(row, tail) : load_wide(row + v * L),
          sums[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    if (kTail)
      store_some<A>(sums[v], acc, tail);
    else
      hn::StoreU(sums[v], Tag<A>(), acc + v * L);
}

template <class S, class A>
void weighted_sum(
    const S* src,
    int64_t stride,
    const A* taps,
    int64_t rows,
    A* acc,
    int64_t width) {
  constexpr int64_t L = kLanes<A>;
  int64_t c = 0;
  for (; c + 4 * L <= width; c += 4 * L)
    weighted_columns<S, A, 4, false>(src + c, stride, taps, rows, acc + c, L);
  for (; c + L <= width; c += L)
    weighted_columns<S, A, 1, false>(src + c, stride, taps, rows, acc + c, L);
  if (c < width)
    weighted_columns<S, A, 1, true>(
        src + c,
        stride,
        taps,
        rows,
        acc + c,
        width - c);
}

/// Rows that are summed in A before they are added in double.
inline constexpr int64_t kSumRows = 64;

template <class S, class A>
void column_sums(
    const S* src,
    int64_t stride,
    int64_t rows,
    int64_t width,
    double* sums) {
  for (int64_t c = 0; c < width; c += kLanes<A>) {
    const int64_t count = HWY_MIN(width - c, int64_t{kLanes<A>});
    for (int64_t t = 0; t < rows; t += kSumRows) {
      auto sum = hn::Zero(Tag<A>());
      const int64_t end = HWY_MIN(rows, t + kSumRows);
      for (int64_t i = t; i < end; ++i)
        sum = hn::Add(sum, load_some<A>(src + i * stride + c, count));
      HWY_ALIGN A lanes[kLanes<A>];
      hn::Store(sum, Tag<A>(), lanes);
      for (int64_t i = 0; i < count; ++i)
        sums[c + i] += static_cast<double>(lanes[i]);
    }
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
