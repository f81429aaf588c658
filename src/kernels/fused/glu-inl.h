#if defined(SEQCONV_KERNELS_GLU_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_GLU_INL_H
#undef SEQCONV_KERNELS_GLU_INL_H
#else
#define SEQCONV_KERNELS_GLU_INL_H
#endif

#include "kernels/common/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class T>
void glu_row(const T* x, T* y, int64_t channels) {
  const T* gate = x + channels;
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c)
    y[c] = x[c] * sigmoid(gate[c]);
}

template <class T>
void glu_backward_row(
    const T* x,
    const T* grad_y,
    T* grad_x,
    int64_t channels) {
  const T* gate = x + channels;
  T* grad_gate = grad_x + channels;
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    const T s = sigmoid(gate[c]);
    const T g = grad_y[c] * s;
    grad_x[c] = g;
    grad_gate[c] = g * x[c] * (T{1} - s);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
