#if defined(SEQCONV_KERNELS_SOFTMAX_BACKWARD_INL_H) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_SOFTMAX_BACKWARD_INL_H
#undef SEQCONV_KERNELS_SOFTMAX_BACKWARD_INL_H
#else
#define SEQCONV_KERNELS_SOFTMAX_BACKWARD_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/conv/softmax-inl.h"

/// Gradients of taps -> of the logits that softmax made them from.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Taps and their gradients, segments side by side, and those of the
/// logits, which go `stride` apart.
template <class L, class A>
struct GradientRow {
  const A* w;
  const A* grad;
  L* out;
  int64_t stride;
  int64_t kernel_size;
  int64_t count;  ///< of segments
};

#if HWY_TARGET == HWY_AVX3
/// Sums over the segments of kPitch lanes, each in all lanes of its segment.
template <int kPitch, class A>
HWY_INLINE Vec<A> segment_sums(Vec<A> v) {
  static_assert(kPitch == 4 || kPitch == 8);
  v = hn::Add(v, hn::Shuffle1032(v));
  v = hn::Add(v, hn::Shuffle2301(v));
  return kPitch == 4 ? v : hn::Add(v, hn::SwapAdjacentBlocks(v));
}

/// N lanes: segments of kPitch lanes, whose first K are stored.
template <int N, int kPitch, class V, class T>
HWY_INLINE void store_segments(V v, T* out, int64_t stride, int64_t K) {
  const hn::CappedTag<T, N> d;
  if constexpr (N == kPitch) {
    store_masked(v, d, out, K);
  } else {
    const hn::CappedTag<T, N / 2> half;
    store_segments<N / 2, kPitch>(hn::LowerHalf(half, v), out, stride, K);
    store_segments<N / 2, kPitch>(
        hn::UpperHalf(half, v),
        out + N / 2 / kPitch * stride,
        stride,
        K);
  }
}

template <int kPitch>
HWY_INLINE void
narrow_segments(Vec<float> v, float* out, int64_t stride, int64_t K) {
  store_segments<kLanes<float>, kPitch>(v, out, stride, K);
}
template <int kPitch>
HWY_INLINE void
narrow_segments(Vec<float> v, BFloat16* out, int64_t stride, int64_t K) {
  store_segments<kLanes<float>, kPitch>(narrow_bits(v), &out->bits, stride, K);
}

/// As many segments as fill whole vectors; returns how many.
template <int kPitch, class L, class A>
HWY_INLINE int64_t softmax_backward_packed(const GradientRow<L, A>& row) {
  const auto [w, grad, out, stride, K, count] = row;
  constexpr int N = kLanes<A>;
  constexpr int64_t kSegments = N / kPitch;
  // Taps beyond K are zero, their gradients anything.
  const auto used = lanes_of_taps<kPitch, A>(K);
  int64_t n = 0;
  for (; n + kSegments <= count; n += kSegments) {
    const auto taps = load(w + n * kPitch);
    const auto g = hn::IfThenElseZero(used, load(grad + n * kPitch));
    const auto mean = segment_sums<kPitch, A>(hn::Mul(taps, g));
    narrow_segments<kPitch>(
        hn::Mul(taps, hn::Sub(g, mean)),
        out + n * stride,
        stride,
        K);
  }
  return n;
}
#endif

#if HWY_TARGET != HWY_SCALAR
/// As many segments of whole vectors, the last of which holds some taps, as
/// fill groups whose sums are made together; returns how many.
template <int kPitch, class L, class A>
HWY_INLINE int64_t softmax_backward_groups(const GradientRow<L, A>& row) {
  const auto [w, grad, out, stride, K, count] = row;
  constexpr int N = kLanes<A>, NV = HWY_MAX(1, kPitch / N);
  // Taps beyond K are zero, their gradients anything.
  const auto used = lanes_of_taps<kPitch, A>(K);
  int64_t n = 0;
  for (; n + 4 <= count; n += 4) {
    const A* const taps = w + n * kPitch;
    Vec<A> sums[4], mean[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const A* const of = grad + (n + g) * kPitch;
      const auto tail = hn::IfThenElseZero(used, load(of + (NV - 1) * N));
      sums[g] = hn::Mul(load(taps + g * kPitch + (NV - 1) * N), tail);
#pragma GCC unroll 4
      for (int v = 0; v < NV - 1; ++v)
        sums[g] = hn::MulAdd(
            load(taps + g * kPitch + v * N),
            load(of + v * N),
            sums[g]);
    }
    spread_lanes<A>(add_segments<kPitch, A>(sums), mean);
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const int64_t at = (n + g) * kPitch + v * N;
        store_some<A>(
            hn::Mul(load(w + at), hn::Sub(load(grad + at), mean[g])),
            out + (n + g) * stride + v * N,
            v < NV - 1 ? N : K - v * N);
      }
  }
  return n;
}
#endif

/// As many segments as go together; returns how many.
template <class L, class A>
HWY_INLINE int64_t softmax_backward_together(const GradientRow<L, A>& row) {
  [[maybe_unused]] const int64_t pitch = tap_pitch(row.kernel_size);
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<A, float>) {
    if (pitch == 4)
      return softmax_backward_packed<4>(row);
    if (pitch == 8)
      return softmax_backward_packed<8>(row);
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  constexpr int N = kLanes<A>;
  if constexpr (kSumGroup<A> == 4 && N >= 8)
    if (reaches_last_vector<A>(row.kernel_size)) {
      if (pitch == 16)
        return softmax_backward_groups<16>(row);
      if (pitch == 32)
        return softmax_backward_groups<32>(row);
      if (pitch == 64 && N >= 16)
        return softmax_backward_groups<64>(row);
    }
#endif
  return 0;
}

template <class L, class A>
HWY_INLINE void softmax_backward_row(const GradientRow<L, A>& row) {
  constexpr int64_t N = kLanes<A>;
  const Tag<A> d;
  const auto [w, grad, out, stride, K, count] = row;
  const int64_t pitch = tap_pitch(K);
  const int64_t whole = (K - 1) / N * N, tail = K - whole;
  int64_t n = softmax_backward_together(row);
  for (; n < count; ++n) {
    const A* const taps = w + n * pitch;
    const A* const g = grad + n * pitch;
    L* const to = out + n * stride;
    const auto last_w = load_some<A>(taps + whole, tail);
    const auto last_g = load_some<A>(g + whole, tail);
    auto dot = hn::Mul(last_w, last_g);
    for (int64_t j = 0; j < whole; j += N)
      dot = hn::MulAdd(load(taps + j), load(g + j), dot);
    const auto mean = hn::SumOfLanes(d, dot);
    for (int64_t j = 0; j < whole; j += N)
      store_narrow(hn::Mul(load(taps + j), hn::Sub(load(g + j), mean)), to + j);
    store_some<A>(hn::Mul(last_w, hn::Sub(last_g, mean)), to + whole, tail);
  }
}

template <class L, class A>
void softmax_backward(TapGradient<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.out_stride);
  const int64_t row = tile.heads * tap_pitch(tile.kernel_size);
  for (int64_t t = 0; t < tile.rows; ++t)
    softmax_backward_row<L, A>(
        {.w = tile.w + t * row,
         .grad = tile.grad + t * row,
         .out = tile.out + t * tile.out_stride,
         .stride = stride,
         .kernel_size = tile.kernel_size,
         .count = tile.heads});
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
