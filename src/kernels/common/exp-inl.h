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
namespace seqconv::kernels::HWY_NAMESPACE {

/// e^x of N vectors in place where kLowestNormal <= x <= 80, as 2^n *
/// Taylor(r), x = n ln 2 + r; NaN of NaN, garbage elsewhere. Side by side: one
/// of them would wait for itself.
template <class A, int N>
HWY_INLINE void exps_of_moderate(Vec<A> (&x)[N]) {
  using C = ExpConstants<A>;
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
    p[i] = hn::Set(d, kInverseFactorial<A>[C::kDegree]);
  }
#pragma GCC unroll 16
  for (int k = C::kDegree - 1; k >= 0; --k)
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, kInverseFactorial<A>[k]));
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    const auto power =
        hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, shifted[i]));
    x[i] = hn::Mul(p[i], hn::BitCast(d, power));
  }
}

/// e^x of N vectors in place for x <= 0; 0 below kLowestNormal.
template <class A, int N>
HWY_INLINE void exps_of_negative(Vec<A> (&x)[N]) {
  const Tag<A> d;
  const auto lowest = hn::Set(d, ExpConstants<A>::kLowestNormal);
  hn::Mask<Tag<A>> vanishes[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    vanishes[i] = hn::Lt(x[i], lowest);
  exps_of_moderate<A>(x);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    x[i] = hn::IfThenZeroElse(vanishes[i], x[i]);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
