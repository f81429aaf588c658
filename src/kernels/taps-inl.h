#if defined(SEQCONV_KERNELS_TAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TAPS_INL_H
#undef SEQCONV_KERNELS_TAPS_INL_H
#else
#define SEQCONV_KERNELS_TAPS_INL_H
#endif

#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

/// From raw kernels to taps: softmax and its gradient on segments of K.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// How e^x is computed: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n * P(r).
template <class A>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kLargest = 80.0f;  ///< 2^n and its sums are normal
  static constexpr float kLn2High = 0x1.63p-1f;
  static constexpr float kLn2Low = -0x1.bd0106p-13f;
  static constexpr int kDegree = 5;
  /// Relative error 7.6e-8 for |r| <= ln 2 / 2 (Remez' algorithm).
  static constexpr float kPolynomial[] = {
      0x1.000002p+0f,
      0x1.fffff6p-1f,
      0x1.fffd14p-2f,
      0x1.555a22p-3f,
      0x1.5761p-5f,
      0x1.0fe494p-7f};
  static constexpr int kMantissaBits = 23;
  /// Rounds to whole when added, and leaves n + bias in the low bits.
  static constexpr float kShifter = 0x1.8p23f + 127;
};

template <>
struct ExpConstants<double> {
  static constexpr double kLargest = 600.0;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr int kDegree = 13;
  static constexpr double kPolynomial[] = {
      1.0,
      1.0,
      1.0 / 2,
      1.0 / 6,
      1.0 / 24,
      1.0 / 120,
      1.0 / 720,
      1.0 / 5040,
      1.0 / 40320,
      1.0 / 362880,
      1.0 / 3628800,
      1.0 / 39916800,
      1.0 / 479001600,
      1.0 / 6227020800};
  static constexpr int kMantissaBits = 52;
  static constexpr double kShifter = 0x1.8p52 + 1023;
};

/// e^x where |x| <= kLargest; garbage elsewhere.
template <class A>
HWY_INLINE Vec<A> exp_of_moderate(Vec<A> x) {
  using C = ExpConstants<A>;
  const Tag<A> d;
  const hn::RebindToUnsigned<Tag<A>> du;
  const auto shifter = hn::Set(d, C::kShifter);
  const auto shifted =
      hn::MulAdd(x, hn::Set(d, A(1.4426950408889634)), shifter);
  const auto n = hn::Sub(shifted, shifter);
  auto r = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), r);
  auto p = hn::Set(d, C::kPolynomial[C::kDegree]);
#pragma GCC unroll 16
  for (int k = C::kDegree - 1; k >= 0; --k)
    p = hn::MulAdd(p, r, hn::Set(d, C::kPolynomial[k]));
  const auto power = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, shifted));
  return hn::Mul(p, hn::BitCast(d, power));
}

/// e^x for x <= 0; 0 below -kLargest. NaN stays NaN.
template <class A>
HWY_INLINE Vec<A> exp_of_negative(Vec<A> x) {
  const Tag<A> d;
  const auto low = hn::Set(d, -ExpConstants<A>::kLargest);
  const auto e = exp_of_moderate<A>(hn::IfThenElse(hn::Lt(x, low), low, x));
  const auto out = hn::IfThenElse(hn::Lt(x, low), hn::Zero(d), e);
  return hn::IfThenElse(hn::IsNaN(x), x, out);
}

template <class A>
bool exp_all(A* w, int64_t count) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const auto largest = hn::Set(d, ExpConstants<A>::kLargest);
  auto good = hn::Eq(largest, largest);
  int64_t i = 0;
  for (; i + L <= count; i += L) {
    const auto x = load(w + i);
    good = hn::And(good, hn::Le(hn::Abs(x), largest));
    hn::StoreU(exp_of_moderate<A>(x), d, w + i);
  }
  if (i < count) {
    const auto x = load_some<A>(w + i, count - i);
    good = hn::And(good, hn::Le(hn::Abs(x), largest));
    store_some<A>(exp_of_moderate<A>(x), w + i, count - i);
  }
  return hn::AllTrue(d, good);
}

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

/// Whether exp_of_moderate is exact for all lanes.
template <class A>
HWY_INLINE hn::Mask<Tag<A>> is_moderate(Vec<A> x) {
  return hn::Le(hn::Abs(x), hn::Set(Tag<A>(), ExpConstants<A>::kLargest));
}

/// Segments whose sums are made together: one division serves them all.
template <class A>
inline constexpr int kSegmentGroup = sizeof(A) == 4 && kLanes<A> >= 4 ? 4 : 1;

/// 1 / the sum of the lanes of v[i], in all lanes of out[i].
template <class A>
HWY_INLINE void inverse_lane_sums(
    const Vec<A>* v,
    Vec<A> (&out)[kSegmentGroup<A>]) {
  const Tag<A> d;
  const auto one = hn::Set(d, A(1));
  if constexpr (kSegmentGroup<A> == 1) {
    out[0] = hn::Div(one, hn::SumOfLanes(d, v[0]));
  } else {
#if HWY_TARGET != HWY_SCALAR
    // Every block of four lanes gets a sum of each of the four vectors.
    auto sums = add_neighbours<8, A>(
        add_neighbours<4, A>(v[0], v[1]),
        add_neighbours<4, A>(v[2], v[3]));
    if constexpr (kLanes<A> >= 8)
      sums = hn::Add(sums, hn::SwapAdjacentBlocks(sums));
    if constexpr (kLanes<A> >= 16)
      sums = hn::Add(sums, hn::ConcatLowerUpper(d, sums, sums));
    const auto inverse = hn::Div(one, sums);
    out[0] = hn::Broadcast<0>(inverse);
    out[1] = hn::Broadcast<1>(inverse);
    out[2] = hn::Broadcast<2>(inverse);
    out[3] = hn::Broadcast<3>(inverse);
#endif
  }
}

/// Goes through the segments of a tile, row by row and head by head.
template <class L, class A>
struct SegmentCursor {
  const SoftmaxTile<L, A>& tile;
  const L* raw = tile.raw;
  A* w = tile.w;
  int64_t head = 0;

  HWY_INLINE void next() {
    w += tile.pitch;
    raw += tile.kernel_size;
    if (++head < tile.heads)
      return;
    head = 0;
    raw += tile.raw_stride - tile.heads * tile.kernel_size;
  }
};

/// e^raw of a segment of NV vectors, the last one with `tail` elements.
template <class L, class A, int NV>
HWY_INLINE hn::Mask<Tag<A>> exp_segment(
    const L* raw,
    int64_t tail,
    hn::Mask<Tag<A>> used,
    Vec<A> (&e)[NV]) {
  auto good = used;
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const bool last = v == NV - 1;
    const auto x = last ? load_some<A>(raw + v * kLanes<A>, tail)
                        : load_wide(raw + v * kLanes<A>);
    good = v == 0 ? is_moderate<A>(x) : hn::And(good, is_moderate<A>(x));
    e[v] = exp_of_moderate<A>(x);
    if (last)
      e[v] = hn::IfThenElseZero(used, e[v]);
  }
  return good;
}

/// Softmax of segments of NV vectors, a group at a time; of the last ones one
/// stands for several.
template <class L, class A, int NV>
HWY_INLINE bool softmax_segments(const SoftmaxTile<L, A>& tile) {
  constexpr int kGroup = kSegmentGroup<A>;
  const Tag<A> d;
  const int64_t tail = tile.kernel_size - (NV - 1) * kLanes<A>;
  const auto used = hn::FirstN(d, static_cast<size_t>(tail));
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  SegmentCursor<L, A> at{tile};
  const int64_t count = tile.rows * tile.heads;
  for (int64_t s = 0; s < count; s += kGroup) {
    Vec<A> e[kGroup][NV], sums[kGroup], scale[kGroup];
    A* w[kGroup];
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) {
      w[g] = at.w;
      good = hn::And(good, exp_segment<L, A, NV>(at.raw, tail, used, e[g]));
      sums[g] = e[g][0];
#pragma GCC unroll 4
      for (int v = 1; v < NV; ++v)
        sums[g] = hn::Add(sums[g], e[g][v]);
      if (s + g + 1 < count)
        at.next();
    }
    inverse_lane_sums<A>(sums, scale);
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        hn::StoreU(hn::Mul(e[g][v], scale[g]), d, w[g] + v * kLanes<A>);
  }
  return hn::AllTrue(d, good);
}

/// Segments of more vectors than registers would hold.
template <class L, class A>
HWY_INLINE bool softmax_long_segments(const SoftmaxTile<L, A>& tile) {
  const Tag<A> d;
  constexpr int64_t N = kLanes<A>;
  const int64_t K = tile.kernel_size;
  bool good = true;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; ++h) {
      const L* const raw = tile.raw + t * tile.raw_stride + h * K;
      A* const w = tile.w + (t * tile.heads + h) * tile.pitch;
      auto sum = hn::Zero(d);
      for (int64_t j = 0; j < tile.pitch; j += N) {
        const auto used =
            hn::FirstN(d, static_cast<size_t>(HWY_MAX(K - j, int64_t{0})));
        const auto x = K > j ? load_some<A>(raw + j, K - j) : hn::Zero(d);
        good = good && hn::AllTrue(d, is_moderate<A>(x));
        const auto e = hn::IfThenElseZero(used, exp_of_moderate<A>(x));
        hn::StoreU(e, d, w + j);
        sum = hn::Add(sum, e);
      }
      const auto scale = hn::Div(hn::Set(d, A(1)), hn::SumOfLanes(d, sum));
      for (int64_t j = 0; j < tile.pitch; j += N)
        hn::StoreU(hn::Mul(load(w + j), scale), d, w + j);
    }
  return good;
}

template <class L, class A>
bool softmax_tile(const SoftmaxTile<L, A>& tile) {
  const int64_t vectors = tile.pitch / kLanes<A>;
  if ((vectors - 1) * kLanes<A> >= tile.kernel_size)
    return softmax_long_segments(tile);
  switch (vectors) {
    case 1:
      return softmax_segments<L, A, 1>(tile);
    case 2:
      return softmax_segments<L, A, 2>(tile);
    case 4:
      return softmax_segments<L, A, 4>(tile);
    default:
      return softmax_long_segments(tile);
  }
}

template <class A, int K>
HWY_INLINE void
sums_of_few(const A* w, int64_t segments, int64_t kernel_size, A* sums) {
  const int64_t count = K > 0 ? K : kernel_size;
  for (int64_t s = 0; s < segments; ++s, w += count) {
    A sum = w[0];
    for (int64_t j = 1; j < count; ++j)
      sum += w[j];
    sums[s] = sum;
  }
}

template <class A>
void inverse_sums(
    const A* w,
    int64_t segments,
    int64_t kernel_size,
    A* inverse) {
  if (kernel_size == 3)
    sums_of_few<A, 3>(w, segments, kernel_size, inverse);
  else if (kernel_size == 7)
    sums_of_few<A, 7>(w, segments, kernel_size, inverse);
  else
    sums_of_few<A, 0>(w, segments, kernel_size, inverse);
  for (int64_t s = 0; s < segments; ++s)
    inverse[s] = A(1) / inverse[s];
}

template <class L, class A>
void softmax_backward(const SoftmaxGradient<L, A>& in) {
  constexpr int64_t N = kLanes<A>;
  const Tag<A> d;
  const int64_t whole = (in.kernel_size - 1) / N * N;
  const int64_t tail = in.kernel_size - whole;
  for (int64_t t = 0; t < in.rows; ++t) {
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
