#include "seqconv/nn/dynamicconv.h"

#include <ATen/ops/linear.h>

#include <cmath>

#include "drop_connect.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv {

DynamicConvImpl::DynamicConvImpl(
    const ConvOptions& options,
    const InitGenerator& generator)
    : options_(options) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(options.channels));
  weight = register_parameter(
      "weight_linear",
      uniform(
          {options.heads * options.kernel_size, options.channels},
          bound,
          generator));
}

at::Tensor DynamicConvImpl::logits(const at::Tensor& x) const {
  // Two dimensions take torch's direct path to one matrix product.
  return at::linear(x.reshape({-1, options_.channels}), weight)
      .view({x.size(0), x.size(1), options_.heads, options_.kernel_size});
}

at::Tensor DynamicConvImpl::forward(
    const at::Tensor& x,
    const std::optional<at::Tensor>& lengths,
    DropoutPlan& plan) const {
  return ops::dynamicconv(
      x,
      logits(x),
      {.padding_left = options_.padding_left(),
       .drop = drop_connect(options_.weight_dropout, plan),
       .bias = {},
       .lengths = lengths});
}

at::Tensor DynamicConvImpl::step(
    const at::Tensor& x,
    ConvState& state,
    const StepPosition& position) const {
  return ops::dynamicconv_step(x, state.window, position.tensor, logits(x));
}

ConvState DynamicConvImpl::initial_state(int64_t rows) const {
  return {ops::conv_initial_state(
      rows,
      options_.kernel_size,
      options_.channels,
      weight.options())};
}

}  // namespace seqconv
