#if defined(SEQCONV_KERNELS_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_VECTOR_MATH_INL_H
#undef SEQCONV_KERNELS_VECTOR_MATH_INL_H
#else
#define SEQCONV_KERNELS_VECTOR_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

/// Elementary functions without calls or branches, so that loops over them
/// become vector code.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// How exp splits a number: constants of one floating-point type.
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Bits = int32_t;
  static constexpr float kLowest = -104.0f;      // below: rounds to 0
  static constexpr float kHighest = 89.0f;       // above: infinite
  static constexpr float kShifter = 0x1.8p23f;   // rounds to whole when added
  static constexpr float kLn2High = 0x1.63p-1f;  // 9 bits: n * high is exact
  static constexpr float kLn2Low = -0x1.bd0106p-13f;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr int kDegree = 7;
};

template <>
struct ExpConstants<double> {
  using Bits = int64_t;
  static constexpr double kLowest = -746.0;
  static constexpr double kHighest = 710.0;
  static constexpr double kShifter = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr int kDegree = 13;
};

/// 1 / k!: the Taylor coefficients of exp.
template <class T>
inline constexpr auto kInverseFactorial = [] {
  std::array<T, 14> values{};
  long double value = 1;
  for (int k = 0; k < 14; ++k) {
    value /= k > 1 ? k : 1;
    values[k] = static_cast<T>(value);
  }
  return values;
}();

/// x = n ln 2 + r, |r| <= ln 2 / 2, and e^r - 1 - r.
template <class T>
struct ReducedExp {
  typename ExpConstants<T>::Bits n;
  T r;
  T rest;
};

/// Of an x between ExpConstants' bounds, or NaN: then r is NaN.
template <class T>
HWY_INLINE ReducedExp<T> reduced_exp(T x) {
  using K = ExpConstants<T>;
  using Bits = typename K::Bits;
  constexpr T kLog2E = static_cast<T>(1.4426950408889634074L);
  const T shifted = x * kLog2E + K::kShifter;
  const T n = shifted - K::kShifter;
  T r = x - n * K::kLn2High;
  r = r - n * K::kLn2Low;
  T p = kInverseFactorial<T>[K::kDegree];
#pragma GCC unroll 16
  for (int k = K::kDegree - 1; k >= 2; --k)
    p = p * r + kInverseFactorial<T>[k];
  return {std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(K::kShifter), r, p * (r * r)};
}

/// 2^n of a normal number.
template <class T>
HWY_INLINE T power_of_two(typename ExpConstants<T>::Bits n) {
  using K = ExpConstants<T>;
  return std::bit_cast<T>((n + K::kBias) << K::kMantissaBits);
}

/// exp(x) to 1.25 units of the last place (float; double: 2), subnormal
/// results included: 2^n * Taylor(r). NaN gives NaN, infinities their limits.
template <class T>
HWY_INLINE T exp_of(T x) {
  using K = ExpConstants<T>;
  x = x < K::kLowest ? K::kLowest : x;
  x = x > K::kHighest ? K::kHighest : x;
  const auto [n, r, rest] = reduced_exp<T>(x);
  // 2^n in two factors, so that neither of them overflows or vanishes.
  const auto half = n >> 1;
  return (rest + r + T{1}) * power_of_two<T>(half) * power_of_two<T>(n - half);
}

/// 1 / (1 + exp(-x)).
template <class T>
HWY_INLINE T sigmoid(T x) {
  return T{1} / (T{1} + exp_of<T>(-x));
}

/// tanh(x) to 2.5 units of the last place, near 0 too: e / (e + 2) of
/// e = exp(2 |x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1). NaN gives NaN.
template <class T>
HWY_INLINE T tanh_of(T x) {
  constexpr T kOne = 20;  // above: rounds to 1
  T size = x < T{0} ? -x : x;
  size = size > kOne ? kOne : size;
  const auto [n, r, rest] = reduced_exp<T>(size + size);
  const T power = power_of_two<T>(n);
  const T e = (rest + r) * power + (power - T{1});
  return std::copysign(e / (e + T{2}), x);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
