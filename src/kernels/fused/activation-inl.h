#if defined(SEQCONV_KERNELS_ACTIVATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ACTIVATION_INL_H
#undef SEQCONV_KERNELS_ACTIVATION_INL_H
#else
#define SEQCONV_KERNELS_ACTIVATION_INL_H
#endif

#include "kernels/common/keep_mask-inl.h"
#include "kernels/common/vector_math-inl.h"
#include "seqconv/kernels/activation.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <Activation A, class T>
HWY_INLINE T activate(T x) {
  if constexpr (A == Activation::kRelu)
    return x < T{0} ? T{0} : x;
  else
    return x * sigmoid(x);
}

template <class T>
HWY_INLINE T swish_backward(T x, T g) {
  const T s = sigmoid(x);
  return g * (s * (T{1} + x * (T{1} - s)));
}

template <Activation A, class T>
void activate_range(
    const T* x,
    T* y,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = keep(activate<A, T>(x[i]));
  });
}

template <class T>
void relu_backward_range(
    const T* y,
    const T* grad_y,
    T* grad_x,
    int64_t begin,
    int64_t end,
    T scale) {
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
    grad_x[i] = swish_backward(x[i], keep(grad_y[i]));
  });
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
