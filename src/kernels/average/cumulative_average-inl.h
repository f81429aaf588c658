#if defined(SEQCONV_KERNELS_CUMULATIVE_AVERAGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CUMULATIVE_AVERAGE_INL_H
#undef SEQCONV_KERNELS_CUMULATIVE_AVERAGE_INL_H
#else
#define SEQCONV_KERNELS_CUMULATIVE_AVERAGE_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/fused/elementwise_ops.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <bool kForward, class S>
void average_rows(const AverageRows<S>& rows, double* sums) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    const int64_t row = kForward ? i : rows.rows - 1 - i;
    const S* const x = rows.x + row * rows.stride;
    S* const y = rows.y + row * rows.stride;
    const double share = 1.0 / static_cast<double>(rows.position + row + 1);
#pragma omp simd
    for (int64_t c = 0; c < rows.channels; ++c) {
      const double value = static_cast<double>(widen(x[c]));
      const double sum = sums[c] + (kForward ? value : value * share);
      const double out = kForward ? sum * share : sum;
      sums[c] = sum;
      y[c] = narrow<S>(static_cast<AccumulatorOf<S>>(out));
    }
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
