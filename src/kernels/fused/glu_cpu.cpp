#include "seqconv/kernels/glu.h"

#include <algorithm>

#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
namespace {

bool is_padding(const GluShape& shape, int64_t row) {
  return shape.lengths != nullptr &&
      row % shape.steps >= shape.lengths[row / shape.steps];
}

}  // namespace

template <class T>
void glu(
    const T* x,
    T* y,
    const GluShape& shape,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const int64_t C = shape.channels;
  parallel_for(shape.rows, row_grain(C), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (is_padding(shape, r))
        std::fill_n(y + r * C, C, T{0});
      else
        ops.glu(x + r * 2 * C, y + r * C, C);
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
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const int64_t C = shape.channels;
  parallel_for(shape.rows, row_grain(C), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (is_padding(shape, r))
        std::fill_n(grad_x + r * 2 * C, 2 * C, T{0});
      else
        ops.glu_backward(x + r * 2 * C, grad_y + r * C, grad_x + r * 2 * C, C);
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
