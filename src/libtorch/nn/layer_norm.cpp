#include "libtorch/nn/layer_norm.h"

#include <ATen/ops/layer_norm.h>

#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {
namespace {
constexpr double kEpsilon = 1e-5;
}

LayerNormImpl::LayerNormImpl(int64_t channels, const InitGenerator& generator) {
  weight = register_parameter("weight", constant(channels, 1, generator));
  bias = register_parameter("bias", constant(channels, 0, generator));
}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) const {
  if (x.scalar_type() != weight.scalar_type())
    return ops::layer_norm(x, weight, bias, kEpsilon);
  return at::layer_norm(x, {x.size(-1)}, weight, bias, kEpsilon);
}

at::Tensor LayerNormImpl::add(
    const at::Tensor& x, const at::Tensor& residual, double dropout, DropoutPlan& plan) const {
  return ops::dropout_add_layer_norm(
      x, residual, weight, bias, plan.rate(dropout), plan.next_seed(), kEpsilon);
}

}  // namespace seqconv::internal
