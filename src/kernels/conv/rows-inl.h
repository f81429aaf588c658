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

/// The first `count` elements of src as those of dst, then zeros up to `room`.
template <class A, class From, class To>
HWY_INLINE void convert(const From* src, int64_t count, To* dst, int64_t room) {
  for (int64_t i = 0; i < room; i += kLanes<A>)
    store_some<A>(
        count > i ? load_some<A>(src + i, count - i) : hn::Zero(Tag<A>()),
        dst + i,
        room - i);
}

template <class S, class A>
void narrow(const A* src, int64_t count, S* dst) {
  convert<A>(src, count, dst, count);
}

/// Logits -> segments, zero beyond K.
template <class L, class A>
void widen_taps(const TapTile<L, A>& tile) {
  const int64_t H = tile.heads, K = tile.kernel_size, pitch = tap_pitch(K);
  A* w = tile.w;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < H; ++h, w += pitch)
      convert<A>(tile.logits + t * tile.logit_stride + h * K, K, w, pitch);
}

/// Gradients in segments -> of the logits.
template <class L, class A>
void narrow_taps(const TapGradient<L, A>& tile) {
  const int64_t H = tile.heads, K = tile.kernel_size, pitch = tap_pitch(K);
  const A* grad = tile.grad;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < H; ++h, grad += pitch)
      convert<A>(grad, K, tile.out + t * tile.out_stride + h * K, K);
}

/// NV whole vectors of columns, or, with NV = 1, the first `count` lanes.
template <int NV, class S, class A>
HWY_INLINE void weighted_columns(
    const S* src,
    int64_t stride,
    const A* taps,
    int64_t rows,
    A* acc,
    int64_t count) {
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
    const S* src,
    int64_t stride,
    const A* taps,
    int64_t rows,
    A* acc,
    int64_t width) {
  constexpr int64_t L = kLanes<A>;
  int64_t c = 0;
  for (; c + 4 * L <= width; c += 4 * L)
    weighted_columns<4>(src + c, stride, taps, rows, acc + c, width - c);
  for (; c < width; c += L)
    weighted_columns<1>(src + c, stride, taps, rows, acc + c, width - c);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
