#pragma once

#include <cmath>

#include "seqconv/kernels/conv.h"

#ifdef __CUDACC__
#define SEQCONV_TAP_MATH __host__ __device__ inline
#else
#define SEQCONV_TAP_MATH inline
#endif

/// The normalisations of a row of taps other than the softmax, and their
/// gradients, tap by tap: plain functions for the host and for CUDA devices.
/// The caller makes the sums of a row.
namespace seqconv::kernels {

/// softmax: the maximum and 1 / sum of exp; norms: the norm and 1 / (it + e);
/// else 0 and 1.
template <class A>
struct alignas(2 * sizeof(A)) TapStats {
  A shift;
  A scale;
};

SEQCONV_TAP_MATH bool has_norm(Normalization n) {
  return n == Normalization::kL1 || n == Normalization::kL2 ||
      n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}
SEQCONV_TAP_MATH bool is_squared(Normalization n) {
  return n == Normalization::kL2 || n == Normalization::kAbsL2;
}
SEQCONV_TAP_MATH bool is_absolute(Normalization n) {
  return n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}

/// -1, 0 or 1: the derivative of |value|, 0 where there is none.
template <class A>
SEQCONV_TAP_MATH A tap_sign(A value) {
  return static_cast<A>((value > 0) - (value < 0));
}

/// What logit w adds to the sum of its row's norm.
template <class A>
SEQCONV_TAP_MATH A norm_term(Normalization n, A w) {
  return is_squared(n) ? w * w : std::abs(w);
}
/// The statistics of a row from that sum.
template <class A>
SEQCONV_TAP_MATH TapStats<A> norm_stats(Normalization n, A sum) {
  if (!has_norm(n))
    return {A(0), A(1)};
  const A norm = is_squared(n) ? std::sqrt(sum) : sum;
  return {norm, A(1) / (norm + static_cast<A>(kNormEpsilon))};
}

/// The tap of logit w but for the row's scale.
template <class A>
SEQCONV_TAP_MATH A tap_value(Normalization n, A w) {
  switch (n) {
    case Normalization::kSigmoid:
      return A(1) / (A(1) + std::exp(-w));
    case Normalization::kTanh:
      return std::tanh(w);
    case Normalization::kSquare:
      return w * w;
    case Normalization::kAbs:
    case Normalization::kAbsL1:
    case Normalization::kAbsL2:
      return std::abs(w);
    default:
      return w;
  }
}

/// Gradient of the logit w from the gradient g of its tap and the row's sum
/// `dot` of g times w, or |w| where is_absolute.
template <class A>
SEQCONV_TAP_MATH A
logit_gradient(Normalization n, const TapStats<A>& stats, A w, A g, A dot) {
  switch (n) {
    case Normalization::kNone:
    case Normalization::kSoftmax:
      return g;
    case Normalization::kSigmoid: {
      const A tap = tap_value(n, w);
      return g * tap * (A(1) - tap);
    }
    case Normalization::kTanh: {
      const A tap = tap_value(n, w);
      return g * (A(1) - tap * tap);
    }
    case Normalization::kSquare:
      return g * A(2) * w;
    case Normalization::kAbs:
      return g * tap_sign(w);
    default:
      break;
  }
  // A norm of zero has no slope.
  const A slope = !is_squared(n) ? tap_sign(w)
      : stats.shift > 0          ? w / stats.shift
                                 : A(0);
  return (is_absolute(n) ? tap_sign(w) : A(1)) * g * stats.scale -
      slope * dot * stats.scale * stats.scale;
}

}  // namespace seqconv::kernels
