#include "libtorch/nn/short_conv.h"

#include <ATen/ops/index_select.h>

#include <cmath>

#include "libtorch/nn/conv_bias.h"
#include "libtorch/nn/linear.h"

namespace seqconv::internal {
namespace {

double fan_bound(int64_t fan_in) {
  return 1.0 / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace

void ShortConvPast::reorder(const at::Tensor& parents) {
  if (!state.ring.defined())
    return;
  state.ring = at::index_select(state.ring, 0, parents);
  state.positions = at::index_select(state.positions, 0, parents);
}

ShortConvImpl::ShortConvImpl(const ShortConvOptions& options, const InitGenerator& generator)
    : options_(options) {
  const int64_t K = options.kernel_size;
  weight = register_parameter("weight", uniform({options.groups, K}, fan_bound(K), generator));
  if (options.heads > 0 && options.rank > 0)
    narrow = register_parameter(
        "narrow",
        uniform(
            {options.rank, options.query_channels}, fan_bound(options.query_channels), generator));
  if (options.heads > 0)
    weight_linear = register_parameter(
        "weight_linear",
        uniform(
            {options.heads * K, options.rank > 0 ? options.rank : options.query_channels},
            options.rank > 0 ? 0.1 * fan_bound(options.rank) : 0,
            generator));
  if (options.bias)
    bias = register_parameter("bias", constant(options.channels, 0, generator));
}

std::optional<at::Tensor> ShortConvImpl::predicted(const at::Tensor& query) const {
  if (options_.heads == 0)
    return {};
  at::Tensor z = query.reshape({-1, options_.query_channels});  // [B*T, Q]
  if (narrow.defined())
    z = project(z, narrow);  // [B*T, P]
  return project(z, weight_linear)
      .view({query.size(0), query.size(1), options_.heads, options_.kernel_size});
}

at::Tensor ShortConvImpl::forward(
    const at::Tensor& x, const at::Tensor& query, const std::optional<at::Tensor>& lengths) const {
  return ops::short_conv(
      x,
      {.weight = weight,
       .dynamic = predicted(query),
       .bias = optional_bias(bias),
       .padding_left = options_.padding_left(),
       .activation = options_.activation,
       .residual = options_.residual,
       .lengths = lengths});
}

at::Tensor ShortConvImpl::step(
    const at::Tensor& x, const at::Tensor& query, ShortConvPast& past) const {
  return ops::short_conv_step(
      x,
      past.state,
      {.weight = weight,
       .dynamic = predicted(query),
       .bias = optional_bias(bias),
       .activation = options_.activation,
       .residual = options_.residual});
}

ShortConvPast ShortConvImpl::initial_state(int64_t rows) const {
  return {ops::short_conv_initial_state(
      rows, options_.kernel_size, options_.channels, weight.options())};
}

at::Tensor convolve(
    const ShortConv& conv,
    const at::Tensor& x,
    const at::Tensor& query,
    const std::optional<at::Tensor>& lengths) {
  return conv.is_empty() ? x : conv->forward(x, query, lengths);
}

at::Tensor convolve_step(
    const ShortConv& conv, const at::Tensor& x, const at::Tensor& query, ShortConvPast& past) {
  return conv.is_empty() ? x : conv->step(x, query, past);
}

ShortConvPast past_of(const ShortConv& conv, int64_t rows) {
  return conv.is_empty() ? ShortConvPast{} : conv->initial_state(rows);
}

}  // namespace seqconv::internal
