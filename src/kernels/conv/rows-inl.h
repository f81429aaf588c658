#if defined(SEQCONV_KERNELS_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ROWS_INL_H
#undef SEQCONV_KERNELS_ROWS_INL_H
#else
#define SEQCONV_KERNELS_ROWS_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class S, class A>
void narrow(const A* src, int64_t count, S* dst) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(load_some<A>(src + i, count - i), dst + i, count - i);
}

/// NV whole vectors of columns, or, with NV = 1, the first `count` lanes.
template <int NV, class S, class A>
HWY_INLINE void weighted_columns(
    const S* src, int64_t stride, const A* taps, int64_t rows, A* acc, int64_t count) {
  constexpr int L = kLanes<A>;
  const auto columns = [&](const auto* row, int v) HWY_ATTR {
    return NV > 1 ? load_wide(row + v * L) : load_some<A>(row, count);
  };
  Vec<A> sums[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    sums[v] = columns(acc, v);
  for (int64_t i = 0; i < rows; ++i) {
    const auto tap = hn::Set(Tag<A>(), taps[i]);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sums[v] = hn::MulAdd(tap, columns(src + i * stride, v), sums[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    store_some<A>(sums[v], acc + v * L, count - v * L);
}

template <class S, class A>
void weighted_sum(
    const S* src, int64_t stride, const A* taps, int64_t rows, A* acc, int64_t width) {
  constexpr int64_t L = kLanes<A>;
  int64_t c = 0;
  for (; c + 4 * L <= width; c += 4 * L)
    weighted_columns<4>(src + c, stride, taps, rows, acc + c, width - c);
  for (; c < width; c += L)
    weighted_columns<1>(src + c, stride, taps, rows, acc + c, width - c);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
