#include "libtorch/nn/linear.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/linear.h>

#include <cmath>

#include "libtorch/ops/product_sizes.h"

namespace seqconv::internal {
namespace {

void draw_by_fan_in(const at::Tensor& parameter, int64_t in, const InitGenerator& generator) {
  at::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));
  parameter.copy_(uniform(parameter.sizes(), bound, generator));
}

}  // namespace

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::ScalarType type = x.scalar_type();
  std::optional<at::Tensor> offset;
  if (bias.defined())
    offset = bias.to(type);
  const at::Tensor matrix = weight.to(type);
  if (!ops::wants_few_sizes(x))
    return at::linear(x, matrix, offset);
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  const int64_t count = rows.size(0);
  const int64_t more = ops::few_sizes(count) - count;
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return at::linear(more == 0 ? rows : at::constant_pad_nd(rows, {0, 0, 0, more}), matrix, offset)
      .narrow(0, 0, count)
      .view(sizes);
}

LinearImpl::LinearImpl(
    int64_t in, int64_t out, const InitGenerator& generator, int64_t blocks, double gain) {
  weight =
      register_parameter("weight", xavier_uniform({out, in}, in, out / blocks, generator, gain));
  bias = register_parameter("bias", constant(out, 0, generator));
}

void LinearImpl::draw_weight_by_fan_in(const InitGenerator& generator) {
  draw_by_fan_in(weight, weight.size(1), generator);
}

void LinearImpl::draw_bias_by_fan_in(const InitGenerator& generator) {
  draw_by_fan_in(bias, weight.size(1), generator);
}

at::Tensor LinearImpl::forward(const at::Tensor& x) const {
  return project(x, weight, bias);
}

}  // namespace seqconv::internal
