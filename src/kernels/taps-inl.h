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
  static constexpr int kDegree = 7;
  static constexpr float kTaylor[] = {
      1.0f,
      1.0f,
      1.0f / 2,
      1.0f / 6,
      1.0f / 24,
      1.0f / 120,
      1.0f / 720,
      1.0f / 5040};
  static constexpr int kMantissaBits = 23;
  static constexpr int32_t kBias = 127;
};

template <>
struct ExpConstants<double> {
  static constexpr double kLargest = 600.0;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr int kDegree = 13;
  static constexpr double kTaylor[] = {
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
  static constexpr int64_t kBias = 1023;
};

/// e^x where |x| <= kLargest; garbage elsewhere.
template <class A>
HWY_INLINE Vec<A> exp_of_moderate(Vec<A> x) {
  using C = ExpConstants<A>;
  const Tag<A> d;
  const hn::RebindToSigned<Tag<A>> di;
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, A(1.4426950408889634))));
  auto r = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), r);
  auto p = hn::Set(d, C::kTaylor[C::kDegree]);
#pragma GCC unroll 16
  for (int k = C::kDegree - 1; k >= 0; --k)
    p = hn::MulAdd(p, r, hn::Set(d, C::kTaylor[k]));
  const auto power = hn::ShiftLeft<C::kMantissaBits>(
      hn::Add(hn::ConvertTo(di, n), hn::Set(di, C::kBias)));
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

template <class A>
void softmax(A* w, int64_t segments, int64_t kernel_size) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const int64_t K = kernel_size;
  for (int64_t s = 0; s < segments; ++s, w += K) {
    A most = w[0];
    for (int64_t j = 1; j < K; ++j)
      most = w[j] > most ? w[j] : most;
    A total = 0;
    for (int64_t j = 0; j < K; j += L) {
      const int64_t count = HWY_MIN(K - j, L);
      const auto x = load_some<A>(w + j, count);
      store_some<A>(
          exp_of_negative<A>(hn::Sub(x, hn::Set(d, most))),
          w + j,
          count);
    }
    for (int64_t j = 0; j < K; ++j)
      total += w[j];
    for (int64_t j = 0; j < K; ++j)
      w[j] /= total;
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
HWY_INLINE void
sums_of_many(const A* w, int64_t segments, int64_t kernel_size, A* sums) {
  constexpr int64_t L = kLanes<A>;
  for (int64_t s = 0; s < segments; ++s, w += kernel_size) {
    auto sum = load_some<A>(w, kernel_size);
    for (int64_t j = L; j < kernel_size; j += L)
      sum = hn::Add(sum, load_some<A>(w + j, kernel_size - j));
    sums[s] = lane_sum<A>(sum);
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
  else if (kernel_size <= 8)
    sums_of_few<A, 0>(w, segments, kernel_size, inverse);
  else
    sums_of_many<A>(w, segments, kernel_size, inverse);
  for (int64_t s = 0; s < segments; ++s)
    inverse[s] = A(1) / inverse[s];
}

template <class A>
void scale_segments(
    A* w,
    int64_t segments,
    int64_t kernel_size,
    const A* factor) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  for (int64_t s = 0; s < segments; ++s, w += kernel_size) {
    const auto f = hn::Set(d, factor[s]);
    for (int64_t j = 0; j < kernel_size; j += L) {
      const int64_t count = HWY_MIN(kernel_size - j, L);
      store_some<A>(hn::Mul(load_some<A>(w + j, count), f), w + j, count);
    }
  }
}

template <class A>
void softmax_backward(
    const A* w,
    A* grad,
    int64_t grad_stride,
    int64_t segments,
    int64_t kernel_size) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  for (int64_t s = 0; s < segments;
       ++s, w += kernel_size, grad += grad_stride) {
    auto dot = hn::Zero(d);
    for (int64_t j = 0; j < kernel_size; j += L) {
      const int64_t count = HWY_MIN(kernel_size - j, L);
      dot = hn::MulAdd(
          load_some<A>(w + j, count),
          load_some<A>(grad + j, count),
          dot);
    }
    const auto mean = hn::SumOfLanes(d, dot);
    for (int64_t j = 0; j < kernel_size; j += L) {
      const int64_t count = HWY_MIN(kernel_size - j, L);
      const auto g = load_some<A>(grad + j, count);
      store_some<A>(
          hn::Mul(load_some<A>(w + j, count), hn::Sub(g, mean)),
          grad + j,
          count);
    }
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
