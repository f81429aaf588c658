#include "seqconv/kernels/activation.h"

#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
template <class T>
void activation_dropout(
    const T* x,
    T* y,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    switch (activation) {
      case Activation::kRelu:
        return ops.relu(x, y, begin, end, drop);
      case Activation::kSwish:
        return ops.swish(x, y, begin, end, drop);
    }
  });
}

template <class T>
void activation_dropout_backward(
    const T* saved,
    const T* grad_y,
    T* grad_x,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const T scale = static_cast<T>(1.0 / (1.0 - drop.p));
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    switch (activation) {
      case Activation::kRelu:
        return ops.relu_backward(saved, grad_y, grad_x, begin, end, scale);
      case Activation::kSwish:
        return ops.swish_backward(saved, grad_y, grad_x, begin, end, drop);
    }
  });
}

#define SEQCONV_INSTANTIATE(T)                  \
  template void activation_dropout<T>(          \
      const T*,                                 \
      T*,                                       \
      int64_t,                                  \
      Activation,                               \
      Dropout,                                  \
      const ParallelFor&);                      \
  template void activation_dropout_backward<T>( \
      const T*,                                 \
      const T*,                                 \
      T*,                                       \
      int64_t,                                  \
      Activation,                               \
      Dropout,                                  \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
