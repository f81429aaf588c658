#if defined(SEQCONV_KERNELS_LAYER_NORM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LAYER_NORM_INL_H
#undef SEQCONV_KERNELS_LAYER_NORM_INL_H
#else
#define SEQCONV_KERNELS_LAYER_NORM_INL_H
#endif

#include <cmath>

#include "kernels/common/keep_mask-inl.h"
#include "seqconv/kernels/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// z[0, n) = residual + dropout(x), and its sum. `mask` has drawn for the tile.
template <class T>
HWY_INLINE T tile_input(
    const T* x,
    const T* residual,
    const KeepMask<T>& mask,
    T* z,
    int64_t n) {
  T sum = 0;
  if (mask.active() && residual != nullptr) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i)
      sum += z[i] = residual[i] + mask.apply(i, x[i]);
  } else if (mask.active()) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i)
      sum += z[i] = mask.apply(i, x[i]);
  } else if (residual != nullptr) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i)
      sum += z[i] = residual[i] + x[i];
  } else {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i)
      sum += z[i] = x[i];
  }
  return sum;
}

template <class T>
HWY_INLINE double squared_deviation(const T* z, T mean, int64_t n) {
  double total = 0;
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t last = HWY_MIN(first + kTile, n);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i)
      sum += (z[i] - mean) * (z[i] - mean);
    total += sum;
  }
  return total;
}

template <class T>
void layer_norm_rows(
    const LayerNormForward<T>& pass,
    int64_t begin,
    int64_t end) {
  const int64_t C = pass.channels;
  const T* const weight = pass.weight;
  const T* const bias = pass.bias;
  KeepMask<T> mask(pass.drop);
  for (int64_t row = begin; row < end; ++row) {
    // z waits in y's row, which is in the cache, for its mean and variance.
    T* const y = pass.y + row * C;
    double sum = 0;
    for (int64_t first = 0; first < C; first += kTile) {
      const int64_t n = HWY_MIN(kTile, C - first);
      const int64_t index = row * C + first;
      if (mask.active())
        mask.draw(index, n);
      const T* residual =
          pass.residual == nullptr ? nullptr : pass.residual + index;
      sum += tile_input(pass.x + index, residual, mask, y + first, n);
    }
    const T mean = static_cast<T>(sum / static_cast<double>(C));
    const double variance =
        squared_deviation(y, mean, C) / static_cast<double>(C);
    const T rstd = static_cast<T>(1.0 / std::sqrt(variance + pass.epsilon));
    if (pass.normalized != nullptr) {
      T* const normalized = pass.normalized + row * C;
#pragma omp simd
      for (int64_t c = 0; c < C; ++c) {
        const T value = (y[c] - mean) * rstd;
        normalized[c] = value;
        y[c] = value * weight[c] + bias[c];
      }
    } else {
#pragma omp simd
      for (int64_t c = 0; c < C; ++c)
        y[c] = (y[c] - mean) * rstd * weight[c] + bias[c];
    }
    if (pass.rstd != nullptr)
      pass.rstd[row] = rstd;
  }
}

/// Sums over a row of the weighted gradient and of its product with the
/// normalised values.
template <class T>
struct GradientSums {
  T plain = 0;
  T dot = 0;
};

/// kSums: makes these; kParameters: adds the row to grad_weight and grad_bias.
template <bool kSums, bool kParameters, class T>
HWY_INLINE GradientSums<T> add_gradient_row(
    const T* g,
    const T* xhat,
    const T* weight,
    int64_t C,
    T* grad_weight,
    T* grad_bias) {
  T sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t c = 0; c < C; ++c) {
    if constexpr (kSums) {
      const T weighted = g[c] * weight[c];
      sum += weighted;
      dot += weighted * xhat[c];
    }
    if constexpr (kParameters) {
      grad_weight[c] += g[c] * xhat[c];
      grad_bias[c] += g[c];
    }
  }
  return {sum, dot};
}

/// Adds the rows [begin, end) to grad_weight and grad_bias [C], which belong to
/// one part of the partition, and writes their grad_z and grad_x; each only
/// where it is not null.
template <class T>
void layer_norm_backward_rows(
    const LayerNormBackward<T>& pass,
    int64_t begin,
    int64_t end,
    T* grad_weight,
    T* grad_bias) {
  const int64_t C = pass.channels;
  const T* const weight = pass.weight;
  KeepMask<T> mask(pass.drop);
  for (int64_t row = begin; row < end; ++row) {
    const T* const g = pass.grad_y + row * C;
    const T* const xhat = pass.normalized + row * C;
    if (pass.grad_z == nullptr) {
      add_gradient_row<false, true>(g, xhat, weight, C, grad_weight, grad_bias);
      continue;
    }
    T* const grad_z = pass.grad_z + row * C;
    const GradientSums<T> sums = grad_weight == nullptr
        ? add_gradient_row<true, false, T>(g, xhat, weight, C, nullptr, nullptr)
        : add_gradient_row<true, true>(
              g,
              xhat,
              weight,
              C,
              grad_weight,
              grad_bias);
    const T mean = sums.plain / static_cast<T>(C);
    const T slope = sums.dot / static_cast<T>(C);
    const T rstd = pass.rstd[row];
#pragma omp simd
    for (int64_t c = 0; c < C; ++c)
      grad_z[c] = (g[c] * weight[c] - mean - xhat[c] * slope) * rstd;
    if (pass.grad_x == nullptr)
      continue;
    for (int64_t first = 0; first < C; first += kTile) {
      const int64_t n = HWY_MIN(kTile, C - first);
      T* const grad_x = pass.grad_x + row * C + first;
      mask.draw(row * C + first, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        grad_x[i] = mask.apply(i, grad_z[first + i]);
    }
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
