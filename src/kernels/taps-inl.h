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

/// `count` elements in the first lanes of a vector of N, the others zero.
template <int N, class L>
HWY_INLINE auto load_first(const L* p, int64_t count) {
  const hn::CappedTag<float, N> d;
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<L, float>)
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#endif
  HWY_ALIGN float lanes[N] = {};
  for (int64_t i = 0; i < HWY_MIN(count, int64_t{N}); ++i)
    lanes[i] = kernels::widen(p[i]);
  return hn::Load(d, lanes);
}

/// N lanes: rows of raw kernels, kPitch lanes each, the last of `rows` again
/// and again.
template <int N, int kPitch, class L>
HWY_INLINE auto
load_raw_rows(const L* raw, int64_t stride, int64_t rows, int64_t count) {
  if constexpr (N <= kPitch) {
    return load_first<N>(raw, count);
  } else {
    constexpr int64_t kHalf = N / kPitch / 2;
    const int64_t below = HWY_MIN(rows - 1, kHalf);
    return hn::Combine(
        hn::CappedTag<float, N>(),
        load_raw_rows<N / 2, kPitch>(
            raw + below * stride,
            stride,
            HWY_MAX(rows - kHalf, int64_t{1}),
            count),
        load_raw_rows<N / 2, kPitch>(raw, stride, rows, count));
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

/// e^raw of some rows of a head, or of one that takes NV vectors.
template <int kPitch, class L, class A, int NV>
HWY_INLINE hn::Mask<Tag<A>> exp_segments(
    const SoftmaxTile<L, A>& tile,
    const L* raw,
    int64_t rows,
    hn::Mask<Tag<A>> used,
    Vec<A> (&e)[NV]) {
  constexpr int N = kLanes<A>;
  auto good = used;
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    Vec<A> x;
    if (v < NV - 1)
      x = load_wide(raw + v * N);
    else
      x = load_raw_rows<N, kPitch>(
          raw + v * N,
          tile.raw_stride,
          rows,
          tile.kernel_size - v * N);
    good = v == 0 ? is_moderate<A>(x) : hn::And(good, is_moderate<A>(x));
    e[v] = exp_of_moderate<A>(x);
    if (v == NV - 1)
      e[v] = hn::IfThenElseZero(used, e[v]);
  }
  return good;
}

/// Softmax of rows from t on of head h: as many as a group of vectors holds;
/// behind the last row, that one again.
template <int kPitch, class L, class A>
HWY_INLINE hn::Mask<Tag<A>> softmax_group(
    const SoftmaxTile<L, A>& tile,
    int64_t t,
    int64_t h,
    hn::Mask<Tag<A>> used) {
  constexpr int kGroup = kSumGroup<A>, N = kLanes<A>;
  constexpr int NV = HWY_MAX(1, kPitch / N);
  constexpr int64_t kRows = HWY_MAX(1, N / kPitch);
  Vec<A> e[kGroup][NV], sums[kGroup], scale[kGroup];
  auto good = hn::Eq(hn::Zero(Tag<A>()), hn::Zero(Tag<A>()));
#pragma GCC unroll 4
  for (int g = 0; g < kGroup; ++g) {
    const int64_t row = HWY_MIN(t + g * kRows, tile.rows - 1);
    const L* const raw =
        tile.raw + row * tile.raw_stride + h * tile.kernel_size;
    good = hn::And(
        good,
        exp_segments<kPitch, L, A, NV>(tile, raw, tile.rows - row, used, e[g]));
    sums[g] = e[g][0];
#pragma GCC unroll 4
    for (int v = 1; v < NV; ++v)
      sums[g] = hn::Add(sums[g], e[g][v]);
  }
  inverse_segment_sums<kPitch, A>(sums, scale);
#pragma GCC unroll 4
  for (int g = 0; g < kGroup; ++g) {
    const int64_t row = HWY_MIN(t + g * kRows, tile.rows - 1);
    A* const w = tile.w + h * tile.head_stride + row * kPitch;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto taps = hn::Mul(e[g][v], scale[g]);
      if (HWY_LIKELY(row + kRows <= tile.rows))
        hn::StoreU(taps, Tag<A>(), w + v * N);
      else
        store_some<A>(taps, w, (tile.rows - row) * kPitch);
    }
  }
  return good;
}

/// Softmax of segments of kPitch lanes.
template <int kPitch, class L, class A>
HWY_INLINE bool softmax_segments(const SoftmaxTile<L, A>& all) {
  constexpr int N = kLanes<A>;
  constexpr int64_t kRows = kSumGroup<A> * HWY_MAX(1, N / kPitch);
  const Tag<A> d;
  const auto tile = all;
  const auto used = lanes_of_taps<kPitch, A>(tile.kernel_size);
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (int64_t h = 0; h < tile.heads; ++h)
    for (int64_t t = 0; t < tile.rows; t += kRows)
      good = hn::And(good, softmax_group<kPitch>(tile, t, h, used));
  return hn::AllTrue(d, good);
}
#endif

/// Segments one by one, of more vectors than registers would hold.
template <class L, class A>
HWY_INLINE bool softmax_long_segments(const SoftmaxTile<L, A>& tile) {
  const Tag<A> d;
  constexpr int64_t N = kLanes<A>;
  const int64_t K = tile.kernel_size, pitch = tap_pitch(K);
  bool good = true;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; ++h) {
      const L* const raw = tile.raw + t * tile.raw_stride + h * K;
      A* const w = tile.w + h * tile.head_stride + t * pitch;
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

template <class L, class A>
bool softmax_tile(const SoftmaxTile<L, A>& all) {
  auto tile = all;
  const int64_t pitch = tap_pitch(tile.kernel_size);
  // The heads of a single row are as good as rows of a single head.
  if (tile.rows == 1 && tile.head_stride == pitch) {
    tile.raw_stride = tile.kernel_size;
    tile.rows = std::exchange(tile.heads, 1);
  }
#if HWY_TARGET != HWY_SCALAR
  // The last vector of a segment must hold some of its taps.
  const bool even = pitch <= kLanes<A> || pitch - kLanes<A> < tile.kernel_size;
  if constexpr (kSumGroup<A> == 4) {
    if (!even)
      return softmax_long_segments(tile);
    if (pitch == 4)
      return softmax_segments<4>(tile);
    if (pitch == 8)
      return softmax_segments<8>(tile);
    if (pitch == 16)
      return softmax_segments<16>(tile);
    if (pitch == 32 && kLanes<A> >= 8)
      return softmax_segments<32>(tile);
    if (pitch == 64 && kLanes<A> >= 16)
      return softmax_segments<64>(tile);
  }
#endif
  return softmax_long_segments(tile);
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

/// N lanes: rows of kPitch lanes, whose first `count` are stored.
template <int N, int kPitch, class V>
HWY_INLINE void store_rows(V v, float* out, int64_t stride, int64_t count) {
  const hn::CappedTag<float, N> d;
  if constexpr (N == kPitch) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, out);
  } else {
    const hn::CappedTag<float, N / 2> half;
    store_rows<N / 2, kPitch>(hn::LowerHalf(half, v), out, stride, count);
    store_rows<N / 2, kPitch>(
        hn::UpperHalf(half, v),
        out + N / 2 / kPitch * stride,
        stride,
        count);
  }
}

/// As many rows as fill whole vectors; returns how many.
template <int kPitch, class A>
HWY_INLINE int64_t softmax_backward_rows(const SoftmaxGradient<float, A>& in) {
  constexpr int N = kLanes<A>;
  constexpr int64_t kRows = N / kPitch;
  // Taps beyond K are zero, their gradients anything.
  const auto used = lanes_of_taps<kPitch, A>(in.kernel_size);
  int64_t t = 0;
  for (; t + kRows <= in.rows; t += kRows) {
    const auto w = load(in.w + t * kPitch);
    const auto grad = hn::IfThenElseZero(used, load(in.grad + t * kPitch));
    const auto mean = segment_sums<kPitch, A>(hn::Mul(w, grad));
    store_rows<N, kPitch>(
        hn::Mul(w, hn::Sub(grad, mean)),
        in.out + t * in.out_stride,
        in.out_stride,
        in.kernel_size);
  }
  return t;
}
#endif

template <class L, class A>
void softmax_backward(const SoftmaxGradient<L, A>& in) {
  constexpr int64_t N = kLanes<A>;
  const Tag<A> d;
  const int64_t whole = (in.kernel_size - 1) / N * N;
  const int64_t tail = in.kernel_size - whole;
  int64_t t = 0;
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<L, float>) {
    const int64_t pitch = tap_pitch(in.kernel_size);
    if (in.w_stride == pitch && in.grad_stride == pitch && pitch <= 8)
      t = pitch == 4 ? softmax_backward_rows<4>(in)
                     : softmax_backward_rows<8>(in);
  }
#endif
  for (; t < in.rows; ++t) {
    const A* const w = in.w + t * in.w_stride;
    const A* const grad = in.grad + t * in.grad_stride;
    L* const out = in.out + t * in.out_stride;
    const auto last_w = load_some<A>(w + whole, tail);
    const auto last_g = load_some<A>(grad + whole, tail);
    auto dot = hn::Mul(last_w, last_g);
    for (int64_t j = 0; j < whole; j += N)
      dot = hn::MulAdd(load(w + j), load(grad + j), dot);
    const auto mean = hn::SumOfLanes(d, dot);
    for (int64_t j = 0; j < whole; j += N)
      store_narrow(
          hn::Mul(load(w + j), hn::Sub(load(grad + j), mean)),
          out + j);
    store_some<A>(hn::Mul(last_w, hn::Sub(last_g, mean)), out + whole, tail);
  }
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
