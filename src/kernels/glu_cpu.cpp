#include "seqconv/kernels/glu.h"

#include <algorithm>

#include "kernels/multiversion.h"
#include "kernels/vector_math.h"

namespace seqconv::kernels {
namespace {

bool is_padding(const GluShape& shape, int64_t row) {
  return shape.lengths != nullptr &&
      row % shape.steps >= shape.lengths[row / shape.steps];
}

template <class T>
SEQCONV_MULTIVERSION void forward_row(const T* x, T* y, int64_t channels) {
  const T* gate = x + channels;
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c)
    y[c] = x[c] * vector_sigmoid(gate[c]);
}

template <class T>
SEQCONV_MULTIVERSION void
backward_row(const T* x, const T* grad_y, T* grad_x, int64_t channels) {
  const T* gate = x + channels;
  T* grad_gate = grad_x + channels;
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    const T s = vector_sigmoid(gate[c]);
    const T g = grad_y[c] * s;
    grad_x[c] = g;
    grad_gate[c] = g * x[c] * (T{1} - s);
  }
}

/// Rows that are worth a thread's while.
int64_t row_grain(int64_t channels) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, channels));
}

}  // namespace

template <class T>
void glu(
    const T* x,
    T* y,
    const GluShape& shape,
    const ParallelFor& parallel_for) {
  const int64_t C = shape.channels;
  parallel_for(shape.rows, row_grain(C), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (is_padding(shape, r))
        std::fill_n(y + r * C, C, T{0});
      else
        forward_row(x + r * 2 * C, y + r * C, C);
    }
  });
}

template <class T>
void glu_backward(
    const T* x,
    const T* grad_y,
    T* grad_x,
    const GluShape& shape,
    const ParallelFor& parallel_for) {
  const int64_t C = shape.channels;
  parallel_for(shape.rows, row_grain(C), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (is_padding(shape, r))
        std::fill_n(grad_x + r * 2 * C, 2 * C, T{0});
      else
        backward_row(x + r * 2 * C, grad_y + r * C, grad_x + r * 2 * C, C);
    }
  });
}

#define SEQCONV_INSTANTIATE(T)                                             \
  template void glu<T>(const T*, T*, const GluShape&, const ParallelFor&); \
  template void glu_backward<T>(                                           \
      const T*,                                                            \
      const T*,                                                            \
      T*,                                                                  \
      const GluShape&,                                                     \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
