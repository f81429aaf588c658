#if defined(SEQCONV_KERNELS_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_EXP_INL_H
#undef SEQCONV_KERNELS_EXP_INL_H
#else
#define SEQCONV_KERNELS_EXP_INL_H
#endif

#include "kernels/common/vector_math-inl.h"
#include "kernels/common/vectors-inl.h"

/// The exponential of a vector.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// How e^x is computed: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n * P(r).
template <class A>
struct ModerateExpConstants;

template <>
struct ModerateExpConstants<float> : ExpConstants<float> {
  static constexpr float kLowest = -87.0f;  ///< below: 2^n is not normal
  static constexpr int kDegree = 5;
  /// Relative error 7.6e-8 for |r| <= ln 2 / 2 (Remez' algorithm).
  static constexpr float kPolynomial[] = {
      0x1.000002p+0f, 0x1.fffff6p-1f, 0x1.fffd14p-2f, 0x1.555a22p-3f, 0x1.5761p-5f, 0x1.0fe494p-7f};
};

template <>
struct ModerateExpConstants<double> : ExpConstants<double> {
  static constexpr double kLowest = -708.0;
  static constexpr auto kPolynomial = kInverseFactorial<double>;
};

/// e^x of N vectors in place where kLowest <= x <= 80; NaN of NaN, garbage
/// elsewhere. Side by side: one of them would wait for itself.
template <class A, int N>
HWY_INLINE void exps_of_moderate(Vec<A> (&x)[N]) {
  using C = ModerateExpConstants<A>;
  const Tag<A> d;
  const hn::RebindToUnsigned<Tag<A>> du;
  // Leaves n and the bias of an exponent in the low bits.
  const auto shifter = hn::Set(d, C::kShifter + A(C::kBias));
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
    const auto power = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, shifted[i]));
    x[i] = hn::Mul(p[i], hn::BitCast(d, power));
  }
}

/// e^x of N vectors in place for x <= 0; 0 below kLowest.
template <class A, int N>
HWY_INLINE void exps_of_negative(Vec<A> (&x)[N]) {
  const Tag<A> d;
  const auto lowest = hn::Set(d, ModerateExpConstants<A>::kLowest);
  hn::Mask<Tag<A>> vanishes[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    vanishes[i] = hn::Lt(x[i], lowest);
  exps_of_moderate<A>(x);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    x[i] = hn::IfThenZeroElse(vanishes[i], x[i]);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
