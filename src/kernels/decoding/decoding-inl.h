#if defined(SEQCONV_KERNELS_DECODING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_DECODING_INL_H
#undef SEQCONV_KERNELS_DECODING_INL_H
#else
#define SEQCONV_KERNELS_DECODING_INL_H
#endif

#include <algorithm>
#include <cmath>

#include "kernels/common/vector_math-inl.h"
#include "kernels/decoding.h"
#include "kernels/decoding/weigh_rows-inl.h"
#include "kernels/fused/cross_entropy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

HWY_INLINE float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Scores [n] -> their softmax.
HWY_INLINE void softmax_scores(float* scores, int64_t n) {
  const float highest = row_maximum(scores, n);
  const double sum = exponentiate(scores, highest, n).exponentials;
  const float factor = static_cast<float>(1.0 / sum);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    scores[i] *= factor;
}

inline void attend_row(const AttentionRow& args, float* y) {
  const int64_t R = args.channels / args.heads, n = args.count;
  const float scale = 1.0F / std::sqrt(static_cast<float>(R));
  for (int64_t s = 0; s < n; ++s)
    for (int64_t h = 0; h < args.heads; ++h)
      args.scores[h * n + s] = scale * dot(args.query + h * R, args.keys[s] + h * R, R);
  for (int64_t h = 0; h < args.heads; ++h)
    softmax_scores(args.scores + h * n, n);
  weigh_rows(
      {.heads = args.heads, .channels = args.channels, .taps = args.scores, .tap_stride = n},
      {args.values, n},
      y);
}

inline void gate_average(const AverageGate& args, int64_t channels, float* y) {
  const float* const keep = args.gates;
  const float* const take = args.gates + channels;
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c)
    y[c] = args.x[c] * sigmoid(keep[c]) + args.average[c] * sigmoid(take[c]);
}

inline void sigmoids(const float* x, int64_t count, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = sigmoid(x[i]);
}

/// The logarithm of the sum of exp(x - maximum), x left as it is.
HWY_INLINE float log_sum_of_exponentials(const float* x, float maximum, int64_t n) {
  double total = 0;
  for (int64_t first = 0; first < n; first += kSumTile) {
    const int64_t last = HWY_MIN(first + kSumTile, n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i)
      sum += exp_of(x[i] - maximum);
    total += sum;
  }
  return static_cast<float>(std::log(total));
}

inline void log_softmax(float* x, int64_t count) {
  const float highest = row_maximum(x, count);
  const float log_sum = log_sum_of_exponentials(x, highest, count);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    x[i] = (x[i] - highest) - log_sum;
}

inline SoftmaxTerms softmax_terms(const float* x, int64_t count, float* maxima) {
  const int64_t blocks = count / kMaximaBlock;
  for (int64_t b = 0; b < blocks; ++b)
    maxima[b] = row_maximum(x + b * kMaximaBlock, kMaximaBlock);
  const int64_t seen = blocks * kMaximaBlock;
  const float highest = std::max(row_maximum(maxima, blocks), row_maximum(x + seen, count - seen));
  return {highest, log_sum_of_exponentials(x, highest, count)};
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
