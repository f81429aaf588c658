#include "libtorch/nn/lightconv.h"

#include "libtorch/nn/conv_bias.h"
#include "libtorch/nn/drop_connect.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::internal {

LightConvImpl::LightConvImpl(const ConvOptions& options, const InitGenerator& generator)
    : options_(options) {
  const int64_t heads = options.heads, kernel_size = options.kernel_size;
  weight = register_parameter(
      "weight", xavier_uniform({heads, kernel_size}, kernel_size, heads * kernel_size, generator));
  if (options.bias)
    bias = register_parameter("bias", constant(options.channels, 0, generator));
}

at::Tensor LightConvImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  return ops::lightconv(
      x,
      weight,
      {.padding_left = options_.padding_left(),
       .normalization = options_.normalization,
       .renormalize_edges = options_.renormalize_edges,
       .drop = drop_connect(options_.weight_dropout, plan),
       .bias = optional_bias(bias),
       .lengths = lengths});
}

at::Tensor LightConvImpl::step(
    const at::Tensor& x, ConvState& state, const StepPosition& position) const {
  return ops::lightconv_step(
      x,
      state.window,
      position.tensor,
      weight,
      {.normalization = options_.normalization,
       .renormalize_edges = options_.renormalize_edges,
       .bias = optional_bias(bias)});
}

ConvState LightConvImpl::initial_state(int64_t rows) const {
  return {ops::conv_initial_state(rows, options_.kernel_size, options_.channels, weight.options())};
}

}  // namespace seqconv::internal
