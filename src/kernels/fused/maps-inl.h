#if defined(SEQCONV_KERNELS_MAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_MAPS_INL_H
#undef SEQCONV_KERNELS_MAPS_INL_H
#else
#define SEQCONV_KERNELS_MAPS_INL_H
#endif

#include "kernels/common/keep_mask-inl.h"
#include "kernels/common/vector_math-inl.h"

/// Dropout, activations and gates: outputs that depend on single elements.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class T>
void relu_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = keep(x[i] < T{0} ? T{0} : x[i]);
  });
}

template <class T>
void swish_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = keep(x[i] * sigmoid(x[i]));
  });
}

template <class T>
void dropout_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = keep(x[i]);
  });
}

template <class T>
void dropout_add_range(
    const T* x,
    const T* residual,
    T* y,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = residual[i] + keep(x[i]);
  });
}

template <class T>
void relu_backward_range(
    const T* y,
    const T* grad_y,
    T* grad_x,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  const T scale = static_cast<T>(1.0 / (1.0 - drop.p));
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    grad_x[i] = y[i] <= T{0} ? T{0} : grad_y[i] * scale;
}

template <class T>
void swish_backward_range(
    const T* x,
    const T* grad_y,
    T* grad_x,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    const T s = sigmoid(x[i]);
    grad_x[i] = keep(grad_y[i]) * (s * (T{1} + x[i] * (T{1} - s)));
  });
}

template <class T>
void glu_row(const T* x, T* y, int64_t C) {
  const T* gate = x + C;
#pragma omp simd
  for (int64_t c = 0; c < C; ++c)
    y[c] = x[c] * sigmoid(gate[c]);
}

template <class T>
void glu_backward_row(const T* x, const T* grad_y, T* grad_x, int64_t C) {
  const T* gate = x + C;
  T* grad_gate = grad_x + C;
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) {
    const T s = sigmoid(gate[c]);
    const T g = grad_y[c] * s;
    grad_x[c] = g;
    grad_gate[c] = g * x[c] * (T{1} - s);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
