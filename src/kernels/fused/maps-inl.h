#if defined(SEQCONV_KERNELS_MAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_MAPS_INL_H
#undef SEQCONV_KERNELS_MAPS_INL_H
#else
#define SEQCONV_KERNELS_MAPS_INL_H
#endif

#include "kernels/bfloat16.h"
#include "kernels/common/keep_mask-inl.h"
#include "kernels/common/vector_math-inl.h"

/// Dropout, activations and gates: outputs that depend on single elements,
/// which are stored as S.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class S>
void relu_range(const S* x, S* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<AccumulatorOf<S>>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    const auto value = widen(x[i]);
    y[i] = narrow<S>(keep(value < 0 ? 0 : value));
  });
}

template <class S>
void swish_range(const S* x, S* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<AccumulatorOf<S>>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    const auto value = widen(x[i]);
    y[i] = narrow<S>(keep(value * sigmoid(value)));
  });
}

template <class S>
void dropout_range(const S* x, S* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<AccumulatorOf<S>>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = narrow<S>(keep(widen(x[i])));
  });
}

template <class S>
void dropout_add_range(
    const S* x, const S* residual, S* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<AccumulatorOf<S>>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = narrow<S>(widen(residual[i]) + keep(widen(x[i])));
  });
}

template <class S>
void relu_backward_range(
    const S* y, const S* grad_y, S* grad_x, int64_t begin, int64_t end, Dropout drop) {
  using A = AccumulatorOf<S>;
  const A scale = static_cast<A>(1.0 / (1.0 - drop.p));
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    grad_x[i] = narrow<S>(widen(y[i]) <= 0 ? A{0} : widen(grad_y[i]) * scale);
}

template <class S>
void swish_backward_range(
    const S* x, const S* grad_y, S* grad_x, int64_t begin, int64_t end, Dropout drop) {
  for_kept<AccumulatorOf<S>>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    const auto value = widen(x[i]);
    const auto s = sigmoid(value);
    grad_x[i] = narrow<S>(keep(widen(grad_y[i])) * (s * (1 + value * (1 - s))));
  });
}

template <class S>
void glu_row(const S* x, S* y, int64_t C) {
  const S* gate = x + C;
#pragma omp simd
  for (int64_t c = 0; c < C; ++c)
    y[c] = narrow<S>(widen(x[c]) * sigmoid(widen(gate[c])));
}

template <class S>
void glu_backward_row(const S* x, const S* grad_y, S* grad_x, int64_t C) {
  const S* gate = x + C;
  S* grad_gate = grad_x + C;
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) {
    const auto s = sigmoid(widen(gate[c]));
    const auto g = widen(grad_y[c]) * s;
    grad_x[c] = narrow<S>(g);
    grad_gate[c] = narrow<S>(g * widen(x[c]) * (1 - s));
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
