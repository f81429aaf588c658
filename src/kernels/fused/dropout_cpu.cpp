#include "seqconv/kernels/dropout.h"

#include <algorithm>

#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
template <class T>
void dropout(
    const T* x,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    if (drop.p > 0)
      ops.dropout(x, y, begin, end, drop);
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
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    ops.dropout_add(x, residual, y, begin, end, drop);
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
