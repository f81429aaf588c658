#if defined(SEQCONV_KERNELS_TAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TAPS_INL_H
#undef SEQCONV_KERNELS_TAPS_INL_H
#else
#define SEQCONV_KERNELS_TAPS_INL_H
#endif

#include <utility>

#include "kernels/exp-inl.h"
#include "kernels/tile_ops.h"
#include "kernels/tiles.h"
#include "kernels/vectors-inl.h"

/// From raw kernels to taps: softmax and its gradient on segments of K.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Softmax of a single segment, whatever its values.
template <class A>
void softmax_any(A* w, int64_t kernel_size) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const int64_t K = kernel_size;
  A most = w[0];
  for (int64_t j = 1; j < K; ++j)
    most = w[j] > most ? w[j] : most;
  A total = 0;
  for (int64_t j = 0; j < K; j += L) {
    const auto x = load_some<A>(w + j, K - j);
    store_some<A>(
        exp_of_negative<A>(hn::Sub(x, hn::Set(d, most))),
        w + j,
        K - j);
  }
  for (int64_t j = 0; j < K; ++j)
    total += w[j];
  for (int64_t j = 0; j < K; ++j)
    w[j] /= total;
}

/// Vectors whose sums are made together: one division serves them all.
template <class A>
inline constexpr int kSumGroup = sizeof(A) == 4 && kLanes<A> >= 4 ? 4 : 1;

#if HWY_TARGET != HWY_SCALAR
/// 1 / the sums of the segments of kPitch lanes in v[i], each in all lanes of
/// its segment in out[i].
template <int kPitch, class A>
HWY_INLINE void inverse_segment_sums(const Vec<A> (&v)[4], Vec<A> (&out)[4]) {
  const Tag<A> d;
  // Every block of four lanes gets a sum of each of the four vectors.
  auto sums = add_neighbours<8, A>(
      add_neighbours<4, A>(v[0], v[1]),
      add_neighbours<4, A>(v[2], v[3]));
  if constexpr (kLanes<A> >= 8 && kPitch >= 8)
    sums = hn::Add(sums, hn::SwapAdjacentBlocks(sums));
  if constexpr (kLanes<A> >= 16 && kPitch >= 16)
    sums = hn::Add(sums, hn::ConcatLowerUpper(d, sums, sums));
  const auto inverse = hn::Div(hn::Set(d, A(1)), sums);
  out[0] = hn::Broadcast<0>(inverse);
  out[1] = hn::Broadcast<1>(inverse);
  out[2] = hn::Broadcast<2>(inverse);
  out[3] = hn::Broadcast<3>(inverse);
}

/// N lanes: segments of K raw kernels, kPitch lanes each, the last of `count`
/// again and again.
template <int N, int kPitch, class L>
HWY_INLINE auto
load_segments(const L* raw, int64_t stride, int64_t K, int64_t count) {
  if constexpr (N <= kPitch) {
    return load_first(hn::CappedTag<float, N>(), raw, K);
  } else {
    constexpr int64_t kHalf = N / kPitch / 2;
    const int64_t below = HWY_MIN(count - 1, kHalf);
    return hn::Combine(
        hn::CappedTag<float, N>(),
        load_segments<N / 2, kPitch>(
            raw + below * stride,
            stride,
            K,
            HWY_MAX(count - kHalf, int64_t{1})),
        load_segments<N / 2, kPitch>(raw, stride, K, count));
  }
}

/// The lanes that hold taps, of vectors of segments of kPitch lanes or of the
/// last vector of one.
template <int kPitch, class A>
HWY_INLINE hn::Mask<Tag<A>> lanes_of_taps(int64_t kernel_size) {
  constexpr int N = kLanes<A>;
  const Tag<A> d;
  HWY_ALIGN A tap[N];
  for (int i = 0; i < N; ++i)
    tap[i] = static_cast<A>(i % kPitch + HWY_MAX(0, kPitch - N));
  return hn::Lt(hn::Load(d, tap), hn::Set(d, static_cast<A>(kernel_size)));
}

/// e^raw of some of `count` segments, or of one that takes NV vectors.
template <int kPitch, class L, class A, int NV>
HWY_INLINE hn::Mask<Tag<A>> exp_segments(
    const L* raw,
    int64_t stride,
    int64_t K,
    int64_t count,
    hn::Mask<Tag<A>> used,
    Vec<A> (&e)[NV]) {
  constexpr int N = kLanes<A>;
  auto good = used;
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    Vec<A> x;
    if (v < NV - 1)
      x = load_wide(raw + v * N);
    else if (NV > 1)
      x = load_first(Tag<A>(), raw + v * N, K - v * N);
    else
      x = load_segments<N, kPitch>(raw, stride, K, count);
    good = v == 0 ? is_moderate<A>(x) : hn::And(good, is_moderate<A>(x));
    e[v] = exp_of_moderate<A>(x);
    if (v == NV - 1)
      e[v] = hn::IfThenElseZero(used, e[v]);
  }
  return good;
}

/// Softmax of as many of `count` segments, K raw kernels each and `stride`
/// apart, as a group of vectors holds; behind the last one, that one again.
template <int kPitch, class L, class A>
HWY_INLINE hn::Mask<Tag<A>> softmax_group(
    const L* raw,
    int64_t stride,
    int64_t K,
    int64_t count,
    hn::Mask<Tag<A>> used,
    A* w) {
  constexpr int kGroup = kSumGroup<A>, N = kLanes<A>;
  constexpr int NV = HWY_MAX(1, kPitch / N);
  constexpr int64_t kSegments = HWY_MAX(1, N / kPitch);
  Vec<A> e[kGroup][NV], sums[kGroup], scale[kGroup];
  auto good = hn::Eq(hn::Zero(Tag<A>()), hn::Zero(Tag<A>()));
#pragma GCC unroll 4
  for (int g = 0; g < kGroup; ++g) {
    const int64_t n = HWY_MIN(g * kSegments, count - 1);
    good = hn::And(
        good,
        exp_segments<kPitch, L, A, NV>(
            raw + n * stride,
            stride,
            K,
            count - n,
            used,
            e[g]));
    sums[g] = e[g][0];
#pragma GCC unroll 4
    for (int v = 1; v < NV; ++v)
      sums[g] = hn::Add(sums[g], e[g][v]);
  }
  inverse_segment_sums<kPitch, A>(sums, scale);
#pragma GCC unroll 4
  for (int g = 0; g < kGroup; ++g) {
    const int64_t n = HWY_MIN(g * kSegments, count - 1);
    A* const to = w + n * kPitch;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto taps = hn::Mul(e[g][v], scale[g]);
      if (HWY_LIKELY(n + kSegments <= count))
        hn::StoreU(taps, Tag<A>(), to + v * N);
      else
        store_some<A>(taps, to, (count - n) * kPitch);
    }
  }
  return good;
}

/// Softmax of segments of kPitch lanes.
template <int kPitch, class L, class A>
HWY_INLINE bool softmax_segments(
    const SoftmaxTile<L, A>& tile,
    int64_t stride) {
  constexpr int N = kLanes<A>;
  constexpr int64_t kSegments = kSumGroup<A> * HWY_MAX(1, N / kPitch);
  const Tag<A> d;
  const int64_t K = tile.kernel_size, H = tile.heads;
  const auto used = lanes_of_taps<kPitch, A>(K);
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (int64_t t = 0; t < tile.rows; ++t) {
    const L* const raw = tile.raw + t * tile.raw_stride;
    A* const w = tile.w + t * H * kPitch;
    for (int64_t h = 0; h < H; h += kSegments)
      good = hn::And(
          good,
          softmax_group<kPitch, L, A>(
              raw + h * stride,
              stride,
              K,
              H - h,
              used,
              w + h * kPitch));
  }
  return hn::AllTrue(d, good);
}
#endif

/// Segments one by one, of more vectors than registers would hold.
template <class L, class A>
HWY_INLINE bool softmax_long_segments(
    const SoftmaxTile<L, A>& tile,
    int64_t stride) {
  const Tag<A> d;
  constexpr int64_t N = kLanes<A>;
  const int64_t K = tile.kernel_size, pitch = tap_pitch(K);
  bool good = true;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; ++h) {
      const L* const raw = tile.raw + t * tile.raw_stride + h * stride;
      A* const w = tile.w + (t * tile.heads + h) * pitch;
      auto sum = hn::Zero(d);
      for (int64_t j = 0; j < pitch; j += N) {
        const auto used =
            hn::FirstN(d, static_cast<size_t>(HWY_MAX(K - j, int64_t{0})));
        const auto x = K > j ? load_some<A>(raw + j, K - j) : hn::Zero(d);
        good = good && hn::AllTrue(d, is_moderate<A>(x));
        const auto e = hn::IfThenElseZero(used, exp_of_moderate<A>(x));
        store_some<A>(e, w + j, pitch - j);
        sum = hn::Add(sum, e);
      }
      const auto scale = hn::Div(hn::Set(d, A(1)), hn::SumOfLanes(d, sum));
      for (int64_t j = 0; j < pitch; j += N)
        store_some<A>(
            hn::Mul(load_some<A>(w + j, pitch - j), scale),
            w + j,
            pitch - j);
    }
  return good;
}

/// Segments in rows, `stride` apart, as one row if they follow each other
/// evenly; the elements from one to the next.
template <class Tile>
HWY_INLINE int64_t join_rows(Tile& tile, int64_t stride) {
  const bool single = tile.heads == 1;
  if (single || stride == tile.heads * tile.kernel_size)
    tile.heads *= std::exchange(tile.rows, 1);
  return single ? stride : tile.kernel_size;
}

template <class L, class A>
bool softmax_tile(SoftmaxTile<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.raw_stride);
#if HWY_TARGET != HWY_SCALAR
  const int64_t pitch = tap_pitch(tile.kernel_size);
  // The last vector of a segment must hold some of its taps.
  const bool even = pitch <= kLanes<A> || pitch - kLanes<A> < tile.kernel_size;
  if constexpr (kSumGroup<A> == 4) {
    if (!even)
      return softmax_long_segments(tile, stride);
    if (pitch == 4)
      return softmax_segments<4>(tile, stride);
    if (pitch == 8)
      return softmax_segments<8>(tile, stride);
    if (pitch == 16)
      return softmax_segments<16>(tile, stride);
    if (pitch == 32 && kLanes<A> >= 8)
      return softmax_segments<32>(tile, stride);
    if (pitch == 64 && kLanes<A> >= 16)
      return softmax_segments<64>(tile, stride);
  }
#endif
  return softmax_long_segments(tile, stride);
}

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
template <int N, int kPitch, class V>
HWY_INLINE void store_segments(V v, float* out, int64_t stride, int64_t K) {
  const hn::CappedTag<float, N> d;
  if constexpr (N == kPitch) {
    store_masked(v, d, out, K);
  } else {
    const hn::CappedTag<float, N / 2> half;
    store_segments<N / 2, kPitch>(hn::LowerHalf(half, v), out, stride, K);
    store_segments<N / 2, kPitch>(
        hn::UpperHalf(half, v),
        out + N / 2 / kPitch * stride,
        stride,
        K);
  }
}

/// As many of `count` segments as fill whole vectors; returns how many.
template <int kPitch, class A>
HWY_INLINE int64_t softmax_backward_packed(
    const A* w,
    const A* grad,
    float* out,
    int64_t stride,
    int64_t K,
    int64_t count) {
  constexpr int N = kLanes<A>;
  constexpr int64_t kSegments = N / kPitch;
  // Taps beyond K are zero, their gradients anything.
  const auto used = lanes_of_taps<kPitch, A>(K);
  int64_t n = 0;
  for (; n + kSegments <= count; n += kSegments) {
    const auto taps = load(w + n * kPitch);
    const auto g = hn::IfThenElseZero(used, load(grad + n * kPitch));
    const auto mean = segment_sums<kPitch, A>(hn::Mul(taps, g));
    store_segments<N, kPitch>(
        hn::Mul(taps, hn::Sub(g, mean)),
        out + n * stride,
        stride,
        K);
  }
  return n;
}
#endif

/// `count` segments, which go `stride` apart.
template <class L, class A>
HWY_INLINE void softmax_backward_row(
    const A* w,
    const A* grad,
    L* out,
    int64_t stride,
    int64_t K,
    int64_t count) {
  constexpr int64_t N = kLanes<A>;
  const Tag<A> d;
  const int64_t pitch = tap_pitch(K);
  const int64_t whole = (K - 1) / N * N, tail = K - whole;
  int64_t n = 0;
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<L, float>)
    if (pitch <= 8)
      n = pitch == 4
          ? softmax_backward_packed<4>(w, grad, out, stride, K, count)
          : softmax_backward_packed<8>(w, grad, out, stride, K, count);
#endif
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
void softmax_backward(SoftmaxGradient<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.out_stride);
  const int64_t row = tile.heads * tap_pitch(tile.kernel_size);
  for (int64_t t = 0; t < tile.rows; ++t)
    softmax_backward_row(
        tile.w + t * row,
        tile.grad + t * row,
        tile.out + t * tile.out_stride,
        stride,
        tile.kernel_size,
        tile.heads);
}

template <class A>
void multiply(A* a, const A* b, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(
        hn::Mul(load_some<A>(a + i, count - i), load_some<A>(b + i, count - i)),
        a + i,
        count - i);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
