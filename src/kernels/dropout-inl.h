#if defined(SEQCONV_KERNELS_DROPOUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_DROPOUT_INL_H
#undef SEQCONV_KERNELS_DROPOUT_INL_H
#else
#define SEQCONV_KERNELS_DROPOUT_INL_H
#endif

#include "kernels/keep_mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class T>
void dropout_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = HWY_MIN(kTile, end - first);
    mask.draw(first, n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[first + i] = mask.apply(i, x[first + i]);
  }
}

template <class T>
void dropout_add_range(
    const T* x,
    const T* residual,
    T* y,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = HWY_MIN(kTile, end - first);
    if (mask.active()) {
      mask.draw(first, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = residual[first + i] + mask.apply(i, x[first + i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = residual[first + i] + x[first + i];
    }
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
