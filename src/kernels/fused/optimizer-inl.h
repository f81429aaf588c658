#if defined(SEQCONV_KERNELS_OPTIMIZER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_OPTIMIZER_INL_H
#undef SEQCONV_KERNELS_OPTIMIZER_INL_H
#else
#define SEQCONV_KERNELS_OPTIMIZER_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/fused/elementwise_ops.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class T>
void adam_range(T* p, const T* g, T* m, T* v, int64_t n, AdamFactors<T> f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T grad = g[i] * f.grad_scale;
    const T mean = f.beta1 * m[i] + f.rest1 * grad;
    const T square = f.beta2 * v[i] + f.rest2 * grad * grad;
    m[i] = mean;
    v[i] = square;
    const T decayed = p[i] - f.decay * p[i];
    p[i] = decayed - f.rate * (mean / (std::sqrt(square) + f.epsilon));
  }
}

template <class T>
void nag_range(T* p, const T* g, T* buf, int64_t n, NagFactors<T> f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    p[i] = p[i] * f.keep + f.look_ahead * buf[i] - f.look_rate * g[i];
    buf[i] = f.carry * buf[i] - f.rate * g[i];
  }
}

template <class T>
double squared_sum(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]);
    sum += value * value;
  }
  return sum;
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
