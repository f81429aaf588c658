#if defined(SEQCONV_KERNELS_DROPOUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_DROPOUT_INL_H
#undef SEQCONV_KERNELS_DROPOUT_INL_H
#else
#define SEQCONV_KERNELS_DROPOUT_INL_H
#endif

#include "kernels/common/keep_mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class T>
void dropout_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = keep(x[i]);
  });
}

template <class T>
void dropout_add_range(
    const T* x,
    const T* residual,
    T* y,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  for_kept<T>(drop, begin, end, [&](int64_t i, auto keep) HWY_ATTR {
    y[i] = residual[i] + keep(x[i]);
  });
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
