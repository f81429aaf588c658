#if defined(SEQCONV_KERNELS_LAYER_NORM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LAYER_NORM_INL_H
#undef SEQCONV_KERNELS_LAYER_NORM_INL_H
#else
#define SEQCONV_KERNELS_LAYER_NORM_INL_H
#endif

#include <cmath>

#include "kernels/fused/maps-inl.h"
#include "kernels/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// The mean of term(z[i]): tiles are summed in what S is computed in, their
/// sums in double.
template <class S, class Term>
HWY_INLINE double row_mean(const S* z, int64_t n, const Term& term) {
  double total = 0;
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t last = HWY_MIN(first + kTile, n);
    AccumulatorOf<S> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i)
      sum += term(widen(z[i]));
    total += sum;
  }
  return total / static_cast<double>(n);
}

template <class S>
void layer_norm_rows(const LayerNormForward<S>& pass, int64_t begin, int64_t end) {
  using A = AccumulatorOf<S>;
  const int64_t C = pass.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * C, last = first + C;
    // Unless z is x, it waits in y's row, which is in the cache.
    S* const y = pass.y + first;
    const S* z = y;
    if (pass.residual != nullptr)
      dropout_add_range(pass.x, pass.residual, pass.y, first, last, pass.drop);
    else if (pass.drop.p > 0)
      dropout_range(pass.x, pass.y, first, last, pass.drop);
    else
      z = pass.x + first;
    const A mean = static_cast<A>(row_mean(z, C, [](A value) HWY_ATTR { return value; }));
    const double variance =
        row_mean(z, C, [mean](A value) HWY_ATTR { return (value - mean) * (value - mean); });
    const A rstd = static_cast<A>(1.0 / std::sqrt(variance + pass.epsilon));
    if (pass.normalized != nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < C; ++c)
        pass.normalized[first + c] = narrow<S>((widen(z[c]) - mean) * rstd);
    }
#pragma omp simd
    for (int64_t c = 0; c < C; ++c)
      y[c] = narrow<S>((widen(z[c]) - mean) * rstd * pass.weight[c] + pass.bias[c]);
    if (pass.rstd != nullptr)
      pass.rstd[row] = rstd;
  }
}

template <class S>
void layer_norm_backward_rows(
    const LayerNormBackward<S>& pass,
    int64_t begin,
    int64_t end,
    AccumulatorOf<S>* grad_weight,
    AccumulatorOf<S>* grad_bias) {
  using A = AccumulatorOf<S>;
  const int64_t C = pass.channels;
  const A* const weight = pass.weight;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * C;
    const S* const grad_y = pass.grad_y + first;
    const S* const normalized = pass.normalized + first;
    A sum = 0, dot = 0;  // of the weighted gradient, and with xhat
#pragma omp simd reduction(+ : sum, dot)
    for (int64_t c = 0; c < C; ++c) {
      const A g = widen(grad_y[c]), xhat = widen(normalized[c]);
      const A weighted = g * weight[c];
      sum += weighted;
      dot += weighted * xhat;
      grad_weight[c] += g * xhat;
      grad_bias[c] += g;
    }
    if (pass.grad_z == nullptr)
      continue;
    S* const grad_z = pass.grad_z + first;
    const A mean = sum / static_cast<A>(C), slope = dot / static_cast<A>(C);
    const A rstd = pass.rstd[row];
#pragma omp simd
    for (int64_t c = 0; c < C; ++c)
      grad_z[c] =
          narrow<S>((widen(grad_y[c]) * weight[c] - mean - widen(normalized[c]) * slope) * rstd);
    if (pass.grad_x != nullptr)
      dropout_range(pass.grad_z, pass.grad_x, first, first + C, pass.drop);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
