#if defined(SEQCONV_KERNELS_CROSS_ENTROPY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CROSS_ENTROPY_INL_H
#undef SEQCONV_KERNELS_CROSS_ENTROPY_INL_H
#else
#define SEQCONV_KERNELS_CROSS_ENTROPY_INL_H
#endif

#include <cmath>
#include <limits>

#include "kernels/common/vector_math-inl.h"
#include "kernels/cross_entropy.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Words whose exponentials are summed in T before the sum goes on in double.
inline constexpr int64_t kSumTile = 512;

template <class T>
HWY_INLINE T row_maximum(const T* x, int64_t n) {
  T highest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < n; ++i)
    highest = highest < x[i] ? x[i] : highest;
  return highest;
}

struct RowSums {
  double exponentials = 0;
  double deviations = 0;  ///< of the logits from their maximum
};

/// Replaces logits by exp(logit - maximum).
template <class T>
HWY_INLINE RowSums exponentiate(T* x, T maximum, int64_t n) {
  RowSums sums;
  for (int64_t first = 0; first < n; first += kSumTile) {
    const int64_t last = HWY_MIN(first + kSumTile, n);
    T exponentials = 0, deviations = 0;
#pragma omp simd reduction(+ : exponentials, deviations)
    for (int64_t i = first; i < last; ++i) {
      const T deviation = x[i] - maximum;
      const T value = exp_of(deviation);
      x[i] = value;
      exponentials += value;
      deviations += deviation;
    }
    sums.exponentials += exponentials;
    sums.deviations += deviations;
  }
  return sums;
}

template <class T>
void cross_entropy_row(const CrossEntropyRows<T>& pass, const SmoothedLoss& smoothed, int64_t row) {
  const int64_t V = pass.vocabulary;
  T* const x = pass.logits + row * V;
  const int64_t target = pass.target[row];
  const T maximum = row_maximum(x, V);
  const double target_deviation = static_cast<double>(x[target]) - maximum;
  const RowSums sums = exponentiate(x, maximum, V);
  const double log_sum = std::log(sums.exponentials);
  const double nll = log_sum - target_deviation;
  double loss = smoothed.nll_weight * nll;
  // Words masked with -inf have an infinite share of the smoothing, but no
  // share at all when there is none.
  if (smoothed.uniform != 0)
    loss += smoothed.uniform * (static_cast<double>(V) * log_sum - sums.deviations);
  pass.nll[row] = nll;
  pass.loss[row] = loss;
  if (!pass.with_gradient)
    return;
  const double mass = smoothed.nll_weight + smoothed.uniform * static_cast<double>(V);
  const T factor = static_cast<T>(mass / sums.exponentials);
  const T uniform = static_cast<T>(smoothed.uniform);
#pragma omp simd
  for (int64_t i = 0; i < V; ++i)
    x[i] = x[i] * factor - uniform;
  x[target] -= static_cast<T>(smoothed.nll_weight);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
