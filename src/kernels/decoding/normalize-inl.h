#if defined(SEQCONV_KERNELS_NORMALIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_NORMALIZE_INL_H
#undef SEQCONV_KERNELS_NORMALIZE_INL_H
#else
#define SEQCONV_KERNELS_NORMALIZE_INL_H
#endif

#include <cmath>

#include "kernels/common/vector_math-inl.h"
#include "kernels/conv.h"

/// Normalisations of taps other than the softmax.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// w[j] = f(w[j]), j < K.
template <class F>
HWY_INLINE void map_taps(float* w, int64_t K, const F& f) {
#pragma omp simd
  for (int64_t j = 0; j < K; ++j)
    w[j] = f(w[j]);
}

/// w -> u / (|w| + e), where u is w or, `absolute`, its absolute values, and
/// |w| the sum of these or, `squared`, the root of the sum of squares.
HWY_INLINE void divide_by_norm(float* w, int64_t K, bool absolute, bool squared) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < K; ++j)
    sum += squared ? w[j] * w[j] : std::abs(w[j]);
  const float norm = squared ? std::sqrt(sum) : sum;
  const float factor = 1 / (norm + static_cast<float>(kNormEpsilon));
  map_taps(w, K, [=](float v) HWY_ATTR { return (absolute ? std::abs(v) : v) * factor; });
}

/// K logits -> taps, in place; nothing is done to those of a softmax.
inline void normalize_taps(Normalization normalization, float* w, int64_t K) {
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:
      return;
    case Normalization::kSigmoid:
      return map_taps(w, K, [](float v) HWY_ATTR { return sigmoid(v); });
    case Normalization::kTanh:
      return map_taps(w, K, [](float v) HWY_ATTR { return tanh_of(v); });
    case Normalization::kSquare:
      return map_taps(w, K, [](float v) HWY_ATTR { return v * v; });
    case Normalization::kAbs:
      return map_taps(w, K, [](float v) HWY_ATTR { return std::abs(v); });
    case Normalization::kL1:
      return divide_by_norm(w, K, /*absolute=*/false, /*squared=*/false);
    case Normalization::kL2:
      return divide_by_norm(w, K, /*absolute=*/false, /*squared=*/true);
    case Normalization::kAbsL1:
      return divide_by_norm(w, K, /*absolute=*/true, /*squared=*/false);
    case Normalization::kAbsL2:
      return divide_by_norm(w, K, /*absolute=*/true, /*squared=*/true);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
