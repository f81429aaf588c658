#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/layer_norm.h"
#include "libtorch/ops/elementwise.h"
#include "libtorch/ops/fused_common.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/parallel.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Inputs of one call; `residual` may be undefined.
struct LayerNormInputs {
  at::Tensor x, residual, weight, bias;
  double p = 0;
  Seed seed = 0;
  double epsilon = 1e-5;
};

struct LayerNormOutputs {
  at::Tensor y;           ///< shape of x
  at::Tensor normalized;  ///< shape of x, for the backward pass
  at::Tensor rstd;        ///< [rows], likewise, in the type of sums
};

LayerNormOutputs run_layer_norm(const LayerNormInputs& in, bool keep) {
  LayerNormOutputs out;
  out.y = at::empty_like(in.x);
  dispatch_storage(in.x.scalar_type(), [&]<class T>(T) {
    using A = kernels::AccumulatorOf<T>;
    kernels::LayerNormForward<T> pass;
    pass.channels = in.x.size(-1);
    pass.rows = in.x.numel() / pass.channels;
    if (keep) {
      out.normalized = at::empty_like(in.x);
      out.rstd = at::empty({pass.rows}, in.weight.options());
      pass.normalized = pointer<T>(out.normalized);
      pass.rstd = pointer<A>(out.rstd);
    }
    pass.x = const_pointer<T>(in.x);
    pass.residual = const_pointer<T>(in.residual);
    pass.weight = const_pointer<A>(in.weight);
    pass.bias = const_pointer<A>(in.bias);
    pass.y = pointer<T>(out.y);
    pass.epsilon = in.epsilon;
    pass.drop = make_dropout(in.p, static_cast<int64_t>(in.seed.value));
    kernels::layer_norm(pass, parallel_for());
  });
  return out;
}

/// What one backward pass returns.
struct LayerNormGradients {
  at::Tensor x, residual, weight, bias;
};

/// Which of them somebody wants; those of weight and bias are one.
struct WantedGradients {
  bool x, residual, parameters;
};

LayerNormGradients run_backward(
    const at::Tensor& grad_y,
    const at::Tensor& normalized,
    const at::Tensor& rstd,
    const at::Tensor& weight,
    kernels::Dropout drop,
    const WantedGradients& wanted) {
  LayerNormGradients grads;
  const bool drops = wanted.x && drop.p > 0;
  if (wanted.x || wanted.residual)
    grads.residual = at::empty_like(normalized);
  grads.x = drops ? at::empty_like(normalized) : grads.residual;
  if (wanted.parameters) {
    grads.weight = at::empty_like(weight);
    grads.bias = at::empty_like(weight);
  }
  dispatch_storage(normalized.scalar_type(), [&]<class T>(T) {
    using A = kernels::AccumulatorOf<T>;
    kernels::LayerNormBackward<T> pass;
    pass.channels = normalized.size(-1);
    pass.rows = rstd.numel();
    pass.grad_y = const_pointer<T>(grad_y);
    pass.normalized = const_pointer<T>(normalized);
    pass.rstd = const_pointer<A>(rstd);
    pass.weight = const_pointer<A>(weight);
    pass.grad_z = pointer_if<T>(grads.residual.defined(), grads.residual);
    pass.grad_x = pointer_if<T>(drops, grads.x);
    pass.grad_weight = pointer_if<A>(wanted.parameters, grads.weight);
    pass.grad_bias = pointer_if<A>(wanted.parameters, grads.bias);
    pass.drop = drop;
    kernels::layer_norm_backward(pass, parallel_for());
  });
  return grads;
}

class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& x,
      const std::optional<at::Tensor>& residual,
      const at::Tensor& weight,
      const at::Tensor& bias,
      const LayerNormInputs& contiguous) {
    LayerNormOutputs out = run_layer_norm(contiguous, /*keep=*/true);
    ctx->save_for_backward({out.normalized, out.rstd, contiguous.weight});
    ctx->saved_data["p"] = contiguous.p;
    ctx->saved_data["seed"] = static_cast<int64_t>(contiguous.seed.value);
    ctx->saved_data["residual"] = residual.has_value();
    return out.y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("dropout_add_layer_norm");
    const variable_list saved = ctx->get_saved_variables();
    const bool residual = ctx->saved_data["residual"].toBool();
    const size_t weight = residual ? 2 : 1;  // its number among the inputs
    const bool want_weight = ctx->needs_input_grad(weight);
    const bool want_bias = ctx->needs_input_grad(weight + 1);
    const LayerNormGradients out = run_backward(
        grads[0].contiguous(),
        saved[0],
        saved[1],
        saved[2],
        make_dropout(ctx->saved_data["p"].toDouble(), ctx->saved_data["seed"].toInt()),
        {.x = ctx->needs_input_grad(0),
         .residual = residual && ctx->needs_input_grad(1),
         .parameters = want_weight || want_bias});
    return {
        out.x,
        residual ? out.residual : at::Tensor(),
        // The engine rounds them to the parameters' type.
        want_weight ? out.weight : at::Tensor(),
        want_bias ? out.bias : at::Tensor(),
        {}};
  }
};

void check_layer_norm(std::string_view op, const LayerNormInputs& in) {
  check_input(op, "x", in.x);
  check_parameter(op, "weight", in.weight, in.x);
  check_parameter(op, "bias", in.bias, in.x);
  check_probability(op, in.p);
  SEQCONV_CHECK_OP(
      op,
      in.x.dim() >= 1 && in.x.size(-1) >= 1,
      "x must have a last axis of at least one channel, but got {}",
      in.x.sizes());
  const int64_t C = in.x.size(-1);
  SEQCONV_CHECK_OP(
      op,
      in.weight.dim() == 1 && in.weight.size(0) == C && in.bias.dim() == 1 && in.bias.size(0) == C,
      "weight and bias must be [C] with C = {}, but got {} and {}",
      C,
      in.weight.sizes(),
      in.bias.sizes());
  SEQCONV_CHECK_OP(op, in.epsilon >= 0, "epsilon must be >= 0, but got {}", in.epsilon);
  if (!in.residual.defined())
    return;
  check_same_type(op, "residual", in.residual, in.x);
  SEQCONV_CHECK_OP(
      op,
      in.x.sizes() == in.residual.sizes(),
      "residual must have the shape of x {}, but got {}",
      in.x.sizes(),
      in.residual.sizes());
}

at::Tensor apply_layer_norm(std::string_view op, const LayerNormInputs& in) {
  check_layer_norm(op, in);
  if (!has_kernel(in.x, in.seed)) {
    const at::Tensor x = dropout_reference(in.x, in.p, in.seed);
    return layer_norm_reference(
        in.residual.defined() ? in.residual + x : x,
        in.weight.to(x.scalar_type()),
        in.bias.to(x.scalar_type()),
        in.epsilon);
  }
  LayerNormInputs contiguous = in;
  contiguous.x = in.x.contiguous();
  if (in.residual.defined())
    contiguous.residual = in.residual.contiguous();
  contiguous.weight = accumulated(in.weight);
  contiguous.bias = accumulated(in.bias);
  const bool differentiate = c10::GradMode::is_enabled() &&
      (in.x.requires_grad() || in.weight.requires_grad() || in.bias.requires_grad() ||
       (in.residual.defined() && in.residual.requires_grad()));
  if (!differentiate)
    return run_layer_norm(contiguous, /*keep=*/false).y;
  const std::optional<at::Tensor> residual =
      in.residual.defined() ? std::optional(in.residual) : std::nullopt;
  return LayerNormFunction::apply(in.x, residual, in.weight, in.bias, contiguous);
}

}  // namespace

at::Tensor dropout_add_layer_norm(
    const at::Tensor& x,
    const at::Tensor& residual,
    const at::Tensor& weight,
    const at::Tensor& bias,
    double p,
    const Seed& seed,
    double epsilon) {
  SEQCONV_CHECK_OP(
      "dropout_add_layer_norm",
      residual.defined(),
      "residual must be a tensor, but got an undefined one");
  return apply_layer_norm("dropout_add_layer_norm", {x, residual, weight, bias, p, seed, epsilon});
}

at::Tensor layer_norm(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  return apply_layer_norm(
      "layer_norm", {x, at::Tensor(), weight, bias, /*p=*/0, /*seed=*/0, epsilon});
}

}  // namespace seqconv::ops
