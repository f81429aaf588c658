#if defined(SEQCONV_KERNELS_LAYER_NORM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LAYER_NORM_INL_H
#undef SEQCONV_KERNELS_LAYER_NORM_INL_H
#else
#define SEQCONV_KERNELS_LAYER_NORM_INL_H
#endif

#include <cmath>

#include "kernels/fused/maps-inl.h"
#include "seqconv/kernels/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// The mean of term(z[i]): tiles are summed in T, their sums in double.
template <class T, class Term>
HWY_INLINE double row_mean(const T* z, int64_t n, const Term& term) {
  double total = 0;
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t last = HWY_MIN(first + kTile, n);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i)
      sum += term(z[i]);
    total += sum;
  }
  return total / static_cast<double>(n);
}

template <class T>
void layer_norm_rows(
    const LayerNormForward<T>& pass,
    int64_t begin,
    int64_t end) {
  const int64_t C = pass.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * C, last = first + C;
    // Unless z is x, it waits in y's row, which is in the cache.
    T* const y = pass.y + first;
    const T* z = y;
    if (pass.residual != nullptr)
      dropout_add_range(pass.x, pass.residual, pass.y, first, last, pass.drop);
    else if (pass.drop.p > 0)
      dropout_range(pass.x, pass.y, first, last, pass.drop);
    else
      z = pass.x + first;
    const T mean =
        static_cast<T>(row_mean(z, C, [](T value) HWY_ATTR { return value; }));
    const double variance = row_mean(z, C, [mean](T value) HWY_ATTR {
      return (value - mean) * (value - mean);
    });
    const T rstd = static_cast<T>(1.0 / std::sqrt(variance + pass.epsilon));
    if (pass.normalized != nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < C; ++c)
        pass.normalized[first + c] = (z[c] - mean) * rstd;
    }
#pragma omp simd
    for (int64_t c = 0; c < C; ++c)
      y[c] = (z[c] - mean) * rstd * pass.weight[c] + pass.bias[c];
    if (pass.rstd != nullptr)
      pass.rstd[row] = rstd;
  }
}

template <class T>
void layer_norm_backward_rows(
    const LayerNormBackward<T>& pass,
    int64_t begin,
    int64_t end,
    T* grad_weight,
    T* grad_bias) {
  const int64_t C = pass.channels;
  const T* const weight = pass.weight;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * C;
    const T* const g = pass.grad_y + first;
    const T* const xhat = pass.normalized + first;
    T sum = 0, dot = 0;  // of the weighted gradient, and with xhat
#pragma omp simd reduction(+ : sum, dot)
    for (int64_t c = 0; c < C; ++c) {
      const T weighted = g[c] * weight[c];
      sum += weighted;
      dot += weighted * xhat[c];
      grad_weight[c] += g[c] * xhat[c];
      grad_bias[c] += g[c];
    }
    if (pass.grad_z == nullptr)
      continue;
    T* const grad_z = pass.grad_z + first;
    const T mean = sum / static_cast<T>(C), slope = dot / static_cast<T>(C);
    const T rstd = pass.rstd[row];
#pragma omp simd
    for (int64_t c = 0; c < C; ++c)
      grad_z[c] = (g[c] * weight[c] - mean - xhat[c] * slope) * rstd;
    if (pass.grad_x != nullptr)
      dropout_range(pass.grad_z, pass.grad_x, first, first + C, pass.drop);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
