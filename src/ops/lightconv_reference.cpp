#include "ops/conv_ops.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::ops {

at::Tensor lightconv_reference(
    const at::Tensor& x,
    const at::Tensor& weight,
    const LightConvFuncOptions& options) {
  const at::Tensor normalized =
      normalize_reference(weight, options.normalization);
  const at::Tensor taps = drop_reference(normalized, options.drop);  // [H, K]
  return convolve_reference(
      x,
      taps.unsqueeze(0).unsqueeze(0),
      options.padding_left,
      options.bias,
      options.lengths);
}

}  // namespace seqconv::ops
