#include "libtorch/ops/conv_ops.h"
#include "seqconv/ops/dynamicconv.h"

namespace seqconv::ops {

at::Tensor dynamicconv_reference(
    const at::Tensor& x, const at::Tensor& logits, const DynamicConvFuncOptions& options) {
  const at::Tensor normalized = options.renormalize_edges
      ? renormalized_reference(logits, x, options.padding_left, options.lengths)
      : normalize_reference(logits, options.normalization);
  const at::Tensor taps = drop_reference(normalized, options.drop);  // [B, T, H, K]
  return convolve_reference(x, taps, options.padding_left, options.bias, options.lengths);
}

}  // namespace seqconv::ops
