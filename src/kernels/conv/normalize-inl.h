#if defined(SEQCONV_KERNELS_NORMALIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_NORMALIZE_INL_H
#undef SEQCONV_KERNELS_NORMALIZE_INL_H
#else
#define SEQCONV_KERNELS_NORMALIZE_INL_H
#endif

#include <cmath>
#include <limits>

#include "kernels/common/exp-inl.h"
#include "kernels/common/vector_math-inl.h"
#include "kernels/conv/segments-inl.h"

/// The normalisations of a kernel, on segments of tap_pitch(K) that lie side by
/// side; softmax-inl.h has the quick softmax.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// w[i] = f(w[i]).
template <class A, class F>
HWY_INLINE void map_taps(A* w, int64_t count, const F& f) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    w[i] = f(w[i]);
}

/// grad[i] = f(w[i], grad[i]).
template <class A, class F>
HWY_INLINE void map_gradients(const A* w, A* grad, int64_t count, const F& f) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    grad[i] = f(w[i], grad[i]);
}

/// Makes what lies beyond the taps of segments zero.
template <class A>
void clear_others(A* w, int64_t segments, int64_t K) {
  const int64_t pitch = tap_pitch(K);
  with_lanes<A>(K, [&]<int N>() HWY_ATTR {
    for (int64_t n = 0; n < segments; ++n) {
      const Segment<A, N> segment(w + n * pitch, K);
      for (int64_t j = K / N * N; j < pitch; j += N)
        segment.store(segment.from(j), j);
    }
  });
}

/// -1, 0 or 1: the derivative of |v|, 0 where there is none.
template <class A>
HWY_INLINE A sign_of(A v) {
  return static_cast<A>(v > 0) - static_cast<A>(v < 0);
}
template <class A>
HWY_INLINE Vec<A> signs_of(Vec<A> v) {
  const Tag<A> d;
  const auto zero = hn::Zero(d), one = hn::Set(d, A(1));
  return hn::Sub(
      hn::IfThenElseZero(hn::Gt(v, zero), one),
      hn::IfThenElseZero(hn::Lt(v, zero), one));
}

/// Norm-based normalisations of a segment: u / (|w| + e), where u is w or,
/// kAbsolute, its absolute values, and |w| the sum of these or, kSquared, the
/// root of the sum of squares.
template <class A, bool kAbsolute, bool kSquared>
struct NormOps {
  template <class Taps>
  static HWY_INLINE A norm(const Taps& w) {
    auto sum = hn::Zero(Tag<A>());
    w.for_each([&](int64_t j) HWY_ATTR {
      const auto x = w.from(j);
      sum = kSquared ? hn::MulAdd(x, x, sum) : hn::Add(sum, hn::Abs(x));
    });
    const A total = lane_sum(sum);
    return kSquared ? std::sqrt(total) : total;
  }

  static HWY_INLINE A scale_of(A norm) {
    return A(1) / (norm + static_cast<A>(kNormEpsilon));
  }

  template <int N>
  static HWY_INLINE void normalize(A* taps, int64_t K) {
    const Segment<A, N> w(taps, K);
    const auto scale = hn::Set(Tag<A>(), scale_of(norm(w)));
    w.for_each([&](int64_t j) HWY_ATTR {
      const auto x = w.from(j);
      w.store(hn::Mul(kAbsolute ? hn::Abs(x) : x, scale), j);
    });
  }

  /// The norm's own gradient, (dot of gradients and u) / (|w| + e)^2 times its
  /// slope, is subtracted.
  template <int N>
  static HWY_INLINE void backward(const A* logits, A* grad, int64_t K) {
    const Tag<A> d;
    const Segment<const A, N> w(logits, K);
    const Segment<A, N> g(grad, K);
    const A size = norm(w), scale = scale_of(size);
    auto dot = hn::Zero(d);
    w.for_each([&](int64_t j) HWY_ATTR {
      const auto x = w.from(j);
      dot = hn::MulAdd(kAbsolute ? hn::Abs(x) : x, g.from(j), dot);
    });
    const auto shift = hn::Set(d, lane_sum(dot) * scale * scale);
    // A norm of zero has no slope.
    const auto length =
        hn::Set(d, size > 0 ? size : std::numeric_limits<A>::infinity());
    w.for_each([&](int64_t j) HWY_ATTR {
      const auto x = w.from(j);
      const auto slope = kSquared ? hn::Div(x, length) : signs_of<A>(x);
      const auto own =
          kAbsolute ? hn::Mul(signs_of<A>(x), g.from(j)) : g.from(j);
      g.store(hn::NegMulAdd(slope, shift, hn::Mul(own, hn::Set(d, scale))), j);
    });
  }
};

template <bool kAbsolute, bool kSquared, class A>
void normalize_by_norm(A* w, int64_t segments, int64_t K) {
  using Ops = NormOps<A, kAbsolute, kSquared>;
  with_lanes<A>(K, [&]<int N>() HWY_ATTR {
    for (int64_t n = 0; n < segments; ++n)
      Ops::template normalize<N>(w + n * tap_pitch(K), K);
  });
}

template <bool kAbsolute, bool kSquared, class A>
void normalize_by_norm_backward(
    const A* w,
    A* grad,
    int64_t segments,
    int64_t K) {
  using Ops = NormOps<A, kAbsolute, kSquared>;
  with_lanes<A>(K, [&]<int N>() HWY_ATTR {
    for (int64_t n = 0; n < segments; ++n) {
      const int64_t at = n * tap_pitch(K);
      Ops::template backward<N>(w + at, grad + at, K);
    }
  });
}

/// Softmax of a segment, whatever its values.
template <class A, int N>
HWY_INLINE void softmax_any_segment(A* taps, int64_t K) {
  const Tag<A> d;
  const Segment<A, N> w(taps, K);
  const auto lowest = hn::Set(d, -std::numeric_limits<A>::infinity());
  auto max = lowest;
  w.for_each([&](int64_t j) HWY_ATTR {
    max = hn::Max(hn::IfThenElse(w.used(j), w.from(j), lowest), max);
  });
  max = hn::MaxOfLanes(d, max);
  auto sum = hn::Zero(d);
  w.for_each([&](int64_t j) HWY_ATTR {
    const auto e =
        w.without_others(exp_of_negative<A>(hn::Sub(w.from(j), max)), j);
    w.store(e, j);
    sum = hn::Add(sum, e);
  });
  const auto total = hn::Set(d, lane_sum(sum));
  w.for_each([&](int64_t j)
                 HWY_ATTR { w.store(hn::Div(w.from(j), total), j); });
}

template <class A>
void softmax_any(A* w, int64_t segments, int64_t kernel_size) {
  with_lanes<A>(kernel_size, [&]<int N>() HWY_ATTR {
    for (int64_t n = 0; n < segments; ++n)
      softmax_any_segment<A, N>(w + n * tap_pitch(kernel_size), kernel_size);
  });
}

/// Logits in segments -> taps, in place.
template <class A>
void normalize_taps(
    Normalization normalization,
    A* w,
    int64_t segments,
    int64_t K) {
  const int64_t count = segments * tap_pitch(K);
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:  // has operations of its own
      return;
    case Normalization::kSigmoid:
      map_taps(w, count, [](A v) HWY_ATTR { return sigmoid(v); });
      return clear_others(w, segments, K);
    case Normalization::kTanh:
      return map_taps(w, count, [](A v) HWY_ATTR { return tanh_of(v); });
    case Normalization::kSquare:
      return map_taps(w, count, [](A v) HWY_ATTR { return v * v; });
    case Normalization::kAbs:
      return map_taps(w, count, [](A v) HWY_ATTR { return v < 0 ? -v : v; });
    case Normalization::kL1:
      return normalize_by_norm<false, false>(w, segments, K);
    case Normalization::kL2:
      return normalize_by_norm<false, true>(w, segments, K);
    case Normalization::kAbsL1:
      return normalize_by_norm<true, false>(w, segments, K);
    case Normalization::kAbsL2:
      return normalize_by_norm<true, true>(w, segments, K);
  }
}

/// Gradients of taps in segments -> of the logits w, in place.
template <class A>
void normalize_taps_backward(
    Normalization normalization,
    const A* w,
    A* grad,
    int64_t segments,
    int64_t K) {
  const int64_t count = segments * tap_pitch(K);
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:  // has operations of its own
      return;
    case Normalization::kSigmoid:
      return map_gradients(w, grad, count, [](A v, A g) HWY_ATTR {
        const A y = sigmoid(v);
        return g * y * (A(1) - y);
      });
    case Normalization::kTanh:
      return map_gradients(w, grad, count, [](A v, A g) HWY_ATTR {
        const A y = tanh_of(v);
        return g * (A(1) - y * y);
      });
    case Normalization::kSquare:
      return map_gradients(w, grad, count, [](A v, A g) HWY_ATTR {
        return g * A(2) * v;
      });
    case Normalization::kAbs:
      return map_gradients(w, grad, count, [](A v, A g) HWY_ATTR {
        return g * sign_of(v);
      });
    case Normalization::kL1:
      return normalize_by_norm_backward<false, false>(w, grad, segments, K);
    case Normalization::kL2:
      return normalize_by_norm_backward<false, true>(w, grad, segments, K);
    case Normalization::kAbsL1:
      return normalize_by_norm_backward<true, false>(w, grad, segments, K);
    case Normalization::kAbsL2:
      return normalize_by_norm_backward<true, true>(w, grad, segments, K);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
