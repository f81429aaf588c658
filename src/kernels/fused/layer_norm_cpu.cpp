#include "seqconv/kernels/layer_norm.h"

#include <algorithm>
#include <vector>

#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
template <class T>
void layer_norm(
    const LayerNormForward<T>& pass,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  parallel_for(
      pass.rows,
      row_grain(pass.channels),
      [&](int64_t begin, int64_t end) { ops.layer_norm(pass, begin, end); });
}

template <class T>
void layer_norm_backward(
    const LayerNormBackward<T>& pass,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  constexpr int64_t kMaxParts = 32;
  const int64_t C = pass.channels;
  const int64_t parts =
      std::clamp<int64_t>(pass.rows / row_grain(C), 1, kMaxParts);
  const bool parameters = pass.grad_weight != nullptr;
  // [parts, 2, C]: sums for grad_weight and grad_bias.
  std::vector<T> partial(
      parameters ? static_cast<size_t>(parts * 2 * C) : 0,
      T{0});
  parallel_for(parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      T* const sums = parameters ? partial.data() + part * 2 * C : nullptr;
      ops.layer_norm_backward(
          pass,
          pass.rows * part / parts,
          pass.rows * (part + 1) / parts,
          sums,
          parameters ? sums + C : nullptr);
    }
  });
  if (!parameters)
    return;
  std::fill_n(pass.grad_weight, C, T{0});
  std::fill_n(pass.grad_bias, C, T{0});
  for (int64_t part = 0; part < parts; ++part) {
    const T* const sums = partial.data() + part * 2 * C;
    for (int64_t c = 0; c < C; ++c) {
      pass.grad_weight[c] += sums[c];
      pass.grad_bias[c] += sums[C + c];
    }
  }
}

#define SEQCONV_INSTANTIATE(T)                                                 \
  template void layer_norm<T>(const LayerNormForward<T>&, const ParallelFor&); \
  template void layer_norm_backward<T>(                                        \
      const LayerNormBackward<T>&,                                             \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
