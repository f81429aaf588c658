// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/tap_ops.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include <cmath>

#include "kernels/common/vector_math-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Normalisations other than softmax: plain loops over segments of
/// tap_pitch(K) ahead of the convolution.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

/// -1, 0 or 1: the derivative of |v|, 0 where there is none.
template <class A>
HWY_INLINE A sign_of(A v) {
  return static_cast<A>(v > 0) - static_cast<A>(v < 0);
}

/// u / (|w| + e), where u is w or, `absolute`, its absolute values, and |w| the
/// sum of these or, `squared`, the root of the sum of squares.
template <class A>
struct Norm {
  bool absolute, squared;

  HWY_INLINE explicit Norm(Normalization kind)
      : absolute(
            kind == Normalization::kAbsL1 || kind == Normalization::kAbsL2),
        squared(kind == Normalization::kL2 || kind == Normalization::kAbsL2) {}

  HWY_INLINE A size(const A* w, int64_t K) const {
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < K; ++j)
      sum += squared ? w[j] * w[j] : std::abs(w[j]);
    return squared ? std::sqrt(sum) : sum;
  }
  static HWY_INLINE A scale(A size) {
    return A(1) / (size + static_cast<A>(kNormEpsilon));
  }
  HWY_INLINE A numerator(A v) const {
    return absolute ? std::abs(v) : v;
  }

  HWY_INLINE void normalize(A* w, int64_t K) const {
    const A factor = scale(size(w, K));
#pragma omp simd
    for (int64_t j = 0; j < K; ++j)
      w[j] = numerator(w[j]) * factor;
  }

  /// The norm's own gradient, (dot of gradients and u) / (|w| + e)^2 times its
  /// slope, is subtracted.
  HWY_INLINE void backward(const A* w, A* g, int64_t K) const {
    A dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < K; ++j)
      dot += numerator(w[j]) * g[j];
    const A norm = size(w, K), factor = scale(norm);
    const A shift = dot * factor * factor;
    // A norm of zero has no slope.
    const A slope = norm > 0 ? A(1) / norm : A(0);
#pragma omp simd
    for (int64_t j = 0; j < K; ++j) {
      const A sign = sign_of(w[j]);
      g[j] = (absolute ? sign : A(1)) * g[j] * factor -
          (squared ? w[j] * slope : sign) * shift;
    }
  }
};

/// Calls use(value, slope) with the functions of a normalisation that looks at
/// single taps: value(w), and its derivative slope(w, value(w)). Returns
/// whether it is one.
template <class A, class Use>
HWY_INLINE bool with_map(Normalization normalization, const Use& use) {
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:  // has operations of its own
      return true;
    case Normalization::kSigmoid:
      use([](A w) HWY_ATTR { return sigmoid(w); },
          [](A, A y) HWY_ATTR { return y * (A(1) - y); });
      return true;
    case Normalization::kTanh:
      use([](A w) HWY_ATTR { return tanh_of(w); },
          [](A, A y) HWY_ATTR { return A(1) - y * y; });
      return true;
    case Normalization::kSquare:
      use([](A w) HWY_ATTR { return w * w; },
          [](A w, A) HWY_ATTR { return A(2) * w; });
      return true;
    case Normalization::kAbs:
      use([](A w) HWY_ATTR { return std::abs(w); },
          [](A w, A) HWY_ATTR { return sign_of(w); });
      return true;
    default:
      return false;
  }
}

/// Logits in segments -> taps, in place.
template <class A>
void normalize(Normalization normalization, A* w, int64_t segments, int64_t K) {
  for (int64_t at = 0; at < segments * tap_pitch(K); at += tap_pitch(K)) {
    const bool is_map = with_map<A>(
        normalization,
        [&](const auto& value, const auto&) HWY_ATTR {
#pragma omp simd
          for (int64_t j = at; j < at + K; ++j)
            w[j] = value(w[j]);
        });
    if (!is_map)
      Norm<A>(normalization).normalize(w + at, K);
  }
}

/// Gradients of taps in segments -> of the logits w, in place.
template <class A>
void normalize_backward(
    Normalization normalization,
    const A* w,
    A* grad,
    int64_t segments,
    int64_t K) {
  for (int64_t at = 0; at < segments * tap_pitch(K); at += tap_pitch(K)) {
    const bool is_map = with_map<A>(
        normalization,
        [&](const auto& value, const auto& slope) HWY_ATTR {
#pragma omp simd
          for (int64_t j = at; j < at + K; ++j)
            grad[j] *= slope(w[j], value(w[j]));
        });
    if (!is_map)
      Norm<A>(normalization).backward(w + at, grad + at, K);
  }
}

/// The table of this instruction set.
struct Tables {
  template <class A>
  static const TapOps<A>& taps() {
    static constexpr TapOps<A> kTable = {
        .normalize = normalize<A>,
        .normalize_backward = normalize_backward<A>};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {

template <class A>
const TapOps<A>& tap_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, taps<A>());
}

template const TapOps<float>& tap_ops(Isa isa);
template const TapOps<double>& tap_ops(Isa isa);

}  // namespace seqconv::kernels
#endif
