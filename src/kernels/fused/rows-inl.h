#if defined(SEQCONV_KERNELS_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ROWS_INL_H
#undef SEQCONV_KERNELS_ROWS_INL_H
#else
#define SEQCONV_KERNELS_ROWS_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A>
void narrow(const A* src, int64_t count, S* dst) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(load_some<A>(src + i, count - i), dst + i, count - i);
}

/// Logits -> segments, zero beyond K.
template <class L, class A>
void widen_taps(const TapTile<L, A>& tile) {
  const Tag<A> d;
  const int64_t K = tile.kernel_size, pitch = tap_pitch(K);
  A* w = tile.w;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; ++h, w += pitch) {
      const L* const logits = tile.logits + t * tile.logit_stride + h * K;
      for (int64_t j = 0; j < pitch; j += kLanes<A>)
        store_some<A>(
            K > j ? load_some<A>(logits + j, K - j) : hn::Zero(d),
            w + j,
            pitch - j);
    }
}

/// Gradients in segments -> of the logits.
template <class L, class A>
void narrow_taps(const TapGradient<L, A>& tile) {
  const int64_t K = tile.kernel_size, pitch = tap_pitch(K);
  const A* grad = tile.grad;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; ++h, grad += pitch) {
      L* const out = tile.out + t * tile.out_stride + h * K;
      for (int64_t j = 0; j < K; j += kLanes<A>)
        store_some<A>(load_some<A>(grad + j, K - j), out + j, K - j);
    }
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
