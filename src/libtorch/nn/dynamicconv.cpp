#include "libtorch/nn/dynamicconv.h"

#include <cmath>

#include "libtorch/nn/conv_bias.h"
#include "libtorch/nn/drop_connect.h"
#include "libtorch/nn/linear.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::internal {

DynamicConvImpl::DynamicConvImpl(const ConvOptions& options, const InitGenerator& generator)
    : options_(options) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(query_channels()));
  const int64_t outputs = options.heads * options.kernel_size;
  weight =
      register_parameter("weight_linear", uniform({outputs, query_channels()}, bound, generator));
  if (options.filter_bias) {
    filter_bias = register_parameter("weight_linear_bias", uniform({outputs}, bound, generator));
  }
  if (options.bias)
    bias = register_parameter("bias", constant(options.channels, 0, generator));
}

int64_t DynamicConvImpl::query_channels() const {
  const int64_t own = options_.query_channels;
  return own != 0 ? own : options_.channels;
}

at::Tensor DynamicConvImpl::logits(const at::Tensor& query) const {
  // Two dimensions take torch's direct path to one matrix product.
  return project(query.reshape({-1, query_channels()}), weight, filter_bias)
      .view({query.size(0), query.size(1), options_.heads, options_.kernel_size});
}

at::Tensor DynamicConvImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  return forward(x, x, lengths, plan);
}

at::Tensor DynamicConvImpl::forward(
    const at::Tensor& x,
    const at::Tensor& query,
    const std::optional<at::Tensor>& lengths,
    DropoutPlan& plan) const {
  const at::Tensor taps = logits(query);  // [B, T, H, K], before softmax
  return ops::dynamicconv(
      x,
      taps,
      {.padding_left = options_.padding_left(),
       .normalization = options_.normalization,
       .renormalize_edges = options_.renormalize_edges,
       .drop = drop_connect(options_.weight_dropout, plan, taps),
       .bias = optional_bias(bias),
       .lengths = lengths});
}

at::Tensor DynamicConvImpl::step(
    const at::Tensor& x, ConvState& state, const StepPosition& position) const {
  return step(x, x, state, position);
}

at::Tensor DynamicConvImpl::step(
    const at::Tensor& x,
    const at::Tensor& query,
    ConvState& state,
    const StepPosition& position) const {
  return ops::dynamicconv_step(
      x,
      state.window,
      position.tensor,
      logits(query),
      {.normalization = options_.normalization,
       .renormalize_edges = options_.renormalize_edges,
       .bias = optional_bias(bias)});
}

ConvState DynamicConvImpl::initial_state(int64_t rows) const {
  return {ops::conv_initial_state(rows, options_.kernel_size, options_.channels, weight.options())};
}

}  // namespace seqconv::internal
