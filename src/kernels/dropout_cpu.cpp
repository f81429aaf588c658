#include "seqconv/kernels/dropout.h"

#include <algorithm>

#include "kernels/keep_mask.h"
#include "kernels/multiversion.h"

namespace seqconv::kernels {
namespace {

template <class T>
SEQCONV_MULTIVERSION void
dropout_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    mask.draw(first, n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[first + i] = mask.apply(i, x[first + i]);
  }
}

template <class T>
SEQCONV_MULTIVERSION void dropout_add_range(
    const T* x,
    const T* residual,
    T* y,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    mask.draw(first, n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[first + i] = residual[first + i] + mask.apply(i, x[first + i]);
  }
}

template <class T>
SEQCONV_MULTIVERSION void
add_range(const T* x, const T* residual, T* y, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    y[i] = residual[i] + x[i];
}

}  // namespace

template <class T>
void dropout(
    const T* x,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for) {
  for_pieces(count, parallel_for, [&](int64_t begin, int64_t end) {
    if (drop.p > 0)
      dropout_range(x, y, begin, end, drop);
    else if (x != y)
      std::copy(x + begin, x + end, y + begin);
  });
}

template <class T>
void dropout_add(
    const T* x,
    const T* residual,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for) {
  for_pieces(count, parallel_for, [&](int64_t begin, int64_t end) {
    if (drop.p > 0)
      dropout_add_range(x, residual, y, begin, end, drop);
    else
      add_range(x, residual, y, begin, end);
  });
}

#define SEQCONV_INSTANTIATE(T)  \
  template void dropout<T>(     \
      const T*,                 \
      T*,                       \
      int64_t,                  \
      Dropout,                  \
      const ParallelFor&);      \
  template void dropout_add<T>( \
      const T*,                 \
      const T*,                 \
      T*,                       \
      int64_t,                  \
      Dropout,                  \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
