// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/tap_ops.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include <cmath>

#include "kernels/common/vector_math-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Normalisations other than softmax, and DropConnect: plain loops over
/// segments of tap_pitch(K) ahead of the convolution.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

/// -1, 0 or 1: the derivative of |v|, 0 where there is none.
template <class A>
HWY_INLINE A sign_of(A v) {
  return static_cast<A>(v > 0) - static_cast<A>(v < 0);
}

/// Calls each(w + n * pitch, grad + n * pitch) for all segments.
template <class A, class Each>
HWY_INLINE void for_segments(
    const A* w,
    A* grad,
    int64_t segments,
    int64_t K,
    const Each& each) {
  for (int64_t n = 0; n < segments; ++n)
    each(w + n * tap_pitch(K), grad + n * tap_pitch(K));
}

/// grad[i] = f(w[i], grad[i]) for all taps.
template <class A, class F>
HWY_INLINE void
map_taps(const A* w, A* grad, int64_t segments, int64_t K, const F& f) {
  for_segments(w, grad, segments, K, [&](const A* v, A* g) HWY_ATTR {
#pragma omp simd
    for (int64_t j = 0; j < K; ++j)
      g[j] = f(v[j], g[j]);
  });
}

/// u / (|w| + e), where u is w or, kAbsolute, its absolute values, and |w| the
/// sum of these or, kSquared, the root of the sum of squares.
template <class A, bool kAbsolute, bool kSquared>
struct Norm {
  A size = 0;
  A scale;  ///< 1 / (|w| + e)

  HWY_INLINE Norm(const A* w, int64_t K) {
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < K; ++j)
      sum += kSquared ? w[j] * w[j] : std::abs(w[j]);
    size = kSquared ? std::sqrt(sum) : sum;
    scale = A(1) / (size + static_cast<A>(kNormEpsilon));
  }

  static HWY_INLINE A numerator(A v) {
    return kAbsolute ? std::abs(v) : v;
  }

  static void normalize(A* taps, int64_t segments, int64_t K) {
    for_segments(taps, taps, segments, K, [&](const A*, A* w) HWY_ATTR {
      const A scale = Norm(w, K).scale;
#pragma omp simd
      for (int64_t j = 0; j < K; ++j)
        w[j] = numerator(w[j]) * scale;
    });
  }

  /// The norm's own gradient, (dot of gradients and u) / (|w| + e)^2 times its
  /// slope, is subtracted.
  static void backward(const A* logits, A* grad, int64_t segments, int64_t K) {
    for_segments(logits, grad, segments, K, [&](const A* w, A* g) HWY_ATTR {
      const Norm norm(w, K);
      A dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t j = 0; j < K; ++j)
        dot += numerator(w[j]) * g[j];
      const A scale = norm.scale, shift = dot * scale * scale;
      // A norm of zero has no slope.
      const A slope = norm.size > 0 ? A(1) / norm.size : A(0);
#pragma omp simd
      for (int64_t j = 0; j < K; ++j) {
        const A sign = sign_of(w[j]);
        g[j] = (kAbsolute ? sign : A(1)) * g[j] * scale -
            (kSquared ? w[j] * slope : sign) * shift;
      }
    });
  }
};

/// Logits in segments -> taps, in place.
template <class A>
void normalize(Normalization normalization, A* w, int64_t segments, int64_t K) {
  const auto map = [&](const auto& f) HWY_ATTR {
    map_taps(w, w, segments, K, [&](A v, A) HWY_ATTR { return f(v); });
  };
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:  // has operations of its own
      return;
    case Normalization::kSigmoid:
      return map([](A v) HWY_ATTR { return sigmoid(v); });
    case Normalization::kTanh:
      return map([](A v) HWY_ATTR { return tanh_of(v); });
    case Normalization::kSquare:
      return map([](A v) HWY_ATTR { return v * v; });
    case Normalization::kAbs:
      return map([](A v) HWY_ATTR { return std::abs(v); });
    case Normalization::kL1:
      return Norm<A, false, false>::normalize(w, segments, K);
    case Normalization::kL2:
      return Norm<A, false, true>::normalize(w, segments, K);
    case Normalization::kAbsL1:
      return Norm<A, true, false>::normalize(w, segments, K);
    case Normalization::kAbsL2:
      return Norm<A, true, true>::normalize(w, segments, K);
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
  const auto map = [&](const auto& slope) HWY_ATTR {
    map_taps(w, grad, segments, K, [&](A v, A g) HWY_ATTR {
      return g * slope(v);
    });
  };
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:  // has operations of its own
      return;
    case Normalization::kSigmoid:
      return map([](A v) HWY_ATTR {
        const A y = sigmoid(v);
        return y * (A(1) - y);
      });
    case Normalization::kTanh:
      return map([](A v) HWY_ATTR {
        const A y = tanh_of(v);
        return A(1) - y * y;
      });
    case Normalization::kSquare:
      return map([](A v) HWY_ATTR { return A(2) * v; });
    case Normalization::kAbs:
      return map([](A v) HWY_ATTR { return sign_of(v); });
    case Normalization::kL1:
      return Norm<A, false, false>::backward(w, grad, segments, K);
    case Normalization::kL2:
      return Norm<A, false, true>::backward(w, grad, segments, K);
    case Normalization::kAbsL1:
      return Norm<A, true, false>::backward(w, grad, segments, K);
    case Normalization::kAbsL2:
      return Norm<A, true, true>::backward(w, grad, segments, K);
  }
}

template <class A>
void drop(const DropTile<A>& tile) {
  const int64_t K = tile.kernel_size;
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t n = 0; n < tile.segments; ++n) {
      const int64_t at = (t * tile.segments + n) * tap_pitch(K);
      const uint32_t* const words = tile.words + t * tile.words_stride + n * K;
      A* const taps = tile.taps + at;
      const auto factor = [&](int64_t j) HWY_ATTR {
        return words[j] < tile.threshold ? A(0) : tile.scale;
      };
#pragma omp simd
      for (int64_t j = 0; j < K; ++j)
        taps[j] *= factor(j);
      if (A* const factors = tile.factors; factors != nullptr)
#pragma omp simd
        for (int64_t j = 0; j < K; ++j)
          factors[at + j] = factor(j);
    }
}

/// The table of this instruction set.
struct Tables {
  template <class A>
  static const TapOps<A>& taps() {
    static constexpr TapOps<A> kTable = {
        .normalize = normalize<A>,
        .normalize_backward = normalize_backward<A>,
        .drop = drop<A>};
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
