#if defined(SEQCONV_KERNELS_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_EXP_INL_H
#undef SEQCONV_KERNELS_EXP_INL_H
#else
#define SEQCONV_KERNELS_EXP_INL_H
#endif

#include "kernels/common/vectors-inl.h"

/// The exponential of a vector.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// How e^x is computed: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n * P(r).
template <class A>
struct ModerateExpConstants;

template <>
struct ModerateExpConstants<float> {
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
  /// Rounds to whole when added, and leaves n in the low bits.
  static constexpr float kShifter = 0x1.8p23f;
};

template <>
struct ModerateExpConstants<double> {
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
  static constexpr double kShifter = 0x1.8p52;
};

/// e^x of N vectors in place where |x| <= kLargest; garbage elsewhere. Side by
/// side: one of them would wait for itself.
template <class A, int N>
HWY_INLINE void exps_of_moderate(Vec<A> (&x)[N]) {
  using C = ModerateExpConstants<A>;
  const Tag<A> d;
  const hn::RebindToUnsigned<Tag<A>> du;
  const auto shifter = hn::Set(d, C::kShifter);
  Vec<A> shifted[N], p[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    shifted[i] = hn::MulAdd(x[i], hn::Set(d, A(1.4426950408889634)), shifter);
    const auto n = hn::Sub(shifted[i], shifter);
    x[i] = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x[i]);
    x[i] = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), x[i]);
    p[i] = hn::Set(d, C::kPolynomial[C::kDegree]);
  }
#pragma GCC unroll 16
  for (int k = C::kDegree - 1; k >= 0; --k)
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, C::kPolynomial[k]));
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    // Times 2^n: n goes to the exponent.
    const auto n = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, shifted[i]));
    x[i] = hn::BitCast(d, hn::Add(hn::BitCast(du, p[i]), n));
  }
}

/// e^x for x <= 0; 0 below -kLargest. NaN stays NaN.
template <class A>
HWY_INLINE Vec<A> exp_of_negative(Vec<A> x) {
  const Tag<A> d;
  const auto low = hn::Set(d, -ModerateExpConstants<A>::kLargest);
  Vec<A> e[1] = {hn::IfThenElse(hn::Lt(x, low), low, x)};
  exps_of_moderate<A>(e);
  const auto out = hn::IfThenElse(hn::Lt(x, low), hn::Zero(d), e[0]);
  return hn::IfThenElse(hn::IsNaN(x), x, out);
}

/// Whether exps_of_moderate() is right for all vectors that were added.
template <class A>
class ModerateBound {
  using Unsigned = hn::RebindToUnsigned<Tag<A>>;

 public:
  HWY_INLINE ModerateBound() : max_(hn::Zero(Unsigned())) {}

  template <int N>
  HWY_INLINE void add(const Vec<A> (&x)[N]) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      max_ = hn::Max(max_, without_sign(x[i]));
  }
  HWY_INLINE bool holds() const {
    const auto limit =
        without_sign(hn::Set(Tag<A>(), ModerateExpConstants<A>::kLargest));
    return hn::AllTrue(Unsigned(), hn::Eq(hn::Max(max_, limit), limit));
  }

 private:
  /// Bits that are ordered as absolute values are, NaN above them all.
  static HWY_INLINE hn::Vec<Unsigned> without_sign(Vec<A> x) {
    const auto bits = hn::BitCast(Unsigned(), x);
    return hn::Add(bits, bits);
  }

  hn::Vec<Unsigned> max_;
};

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
