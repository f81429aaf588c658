#include <ATen/ATen.h>

#include "libtorch/ops/conv_ops.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::ops {

at::Tensor lightconv_reference(
    const at::Tensor& x, const at::Tensor& weight, const LightConvFuncOptions& options) {
  const at::Tensor logits = weight.unsqueeze(0).unsqueeze(0);  // [1, 1, H, K]
  const at::Tensor normalized = options.renormalize_edges
      ? renormalized_reference(logits, x, options.padding_left, options.lengths)
      : normalize_reference(logits, options.normalization);
  // One mask for all positions: drawn on ones of the weight's shape.
  const at::Tensor kept = drop_reference(at::ones_like(weight, normalized.options()), options.drop);
  return convolve_reference(
      x, normalized * kept, options.padding_left, options.bias, options.lengths);
}

}  // namespace seqconv::ops
