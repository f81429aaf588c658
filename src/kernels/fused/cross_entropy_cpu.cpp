#include "seqconv/kernels/cross_entropy.h"

#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
template <class T>
void cross_entropy(
    const CrossEntropyRows<T>& pass,
    const SmoothedLoss& smoothed,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const int64_t grain = row_grain(pass.vocabulary);
  parallel_for(pass.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      ops.cross_entropy(pass, smoothed, row);
  });
}

template void cross_entropy<float>(
    const CrossEntropyRows<float>&,
    const SmoothedLoss&,
    const ParallelFor&);
template void cross_entropy<double>(
    const CrossEntropyRows<double>&,
    const SmoothedLoss&,
    const ParallelFor&);

}  // namespace seqconv::kernels
