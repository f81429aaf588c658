#include "libtorch/ops/elementwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/activation.h"
#include "kernels/dropout.h"
#include "libtorch/ops/fused_common.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/parallel.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor run_dropout(const at::Tensor& input, kernels::Dropout drop) {
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  dispatch_storage(x.scalar_type(), [&]<class T>(T) {
    kernels::dropout<T>(const_pointer<T>(x), pointer<T>(y), x.numel(), drop, parallel_for());
  });
  return y;
}

kernels::Dropout saved_dropout(AutogradContext* ctx) {
  return make_dropout(ctx->saved_data["p"].toDouble(), ctx->saved_data["seed"].toInt());
}

void save_dropout(AutogradContext* ctx, double p, int64_t seed) {
  ctx->saved_data["p"] = p;
  ctx->saved_data["seed"] = seed;
}

class DropoutFunction : public torch::autograd::Function<DropoutFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double p, int64_t seed) {
    save_dropout(ctx, p, seed);
    return run_dropout(x, make_dropout(p, seed));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("dropout");
    return {run_dropout(grads[0], saved_dropout(ctx)), {}, {}};
  }
};

class DropoutAddFunction : public torch::autograd::Function<DropoutAddFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& input,
      const at::Tensor& input_residual,
      double p,
      int64_t seed) {
    save_dropout(ctx, p, seed);
    const at::Tensor x = input.contiguous();
    const at::Tensor residual = input_residual.contiguous();
    at::Tensor y = at::empty_like(x);
    dispatch_storage(x.scalar_type(), [&]<class T>(T) {
      kernels::dropout_add<T>(
          const_pointer<T>(x),
          const_pointer<T>(residual),
          pointer<T>(y),
          x.numel(),
          make_dropout(p, seed),
          parallel_for());
    });
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("dropout_add");
    const kernels::Dropout drop = saved_dropout(ctx);
    at::Tensor grad_x;
    if (ctx->needs_input_grad(0))
      grad_x = drop.p > 0 ? run_dropout(grads[0], drop) : grads[0];
    return {grad_x, grads[0], {}, {}};
  }
};

class ActivationDropoutFunction : public torch::autograd::Function<ActivationDropoutFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& input,
      Activation activation,
      double p,
      int64_t seed) {
    save_dropout(ctx, p, seed);
    ctx->saved_data["activation"] = static_cast<int64_t>(activation);
    const at::Tensor x = input.contiguous();
    at::Tensor y = at::empty_like(x);
    dispatch_storage(x.scalar_type(), [&]<class T>(T) {
      kernels::activation_dropout<T>(
          const_pointer<T>(x),
          pointer<T>(y),
          x.numel(),
          activation,
          make_dropout(p, seed),
          parallel_for());
    });
    // The output is kept by the next product anyway, the input by nobody.
    ctx->save_for_backward({activation == Activation::kRelu ? y : x});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("activation_dropout");
    const at::Tensor saved = ctx->get_saved_variables()[0];
    const at::Tensor grad_y = grads[0].contiguous();
    const auto activation = static_cast<Activation>(ctx->saved_data["activation"].toInt());
    at::Tensor grad_x = at::empty_like(grad_y);
    dispatch_storage(grad_y.scalar_type(), [&]<class T>(T) {
      kernels::activation_dropout_backward<T>(
          const_pointer<T>(saved),
          const_pointer<T>(grad_y),
          pointer<T>(grad_x),
          grad_y.numel(),
          activation,
          saved_dropout(ctx),
          parallel_for());
    });
    return {grad_x, {}, {}, {}};
  }
};

/// Shape of a contiguous input x [..., 2C] with checked lengths.
kernels::GluShape glu_shape(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  kernels::GluShape shape;
  shape.channels = x.size(-1) / 2;
  shape.rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
  if (lengths.has_value()) {
    shape.steps = x.size(1);
    shape.lengths = lengths->const_data_ptr<int64_t>();
  }
  return shape;
}

class GluFunction : public torch::autograd::Function<GluFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx, const at::Tensor& input, const std::optional<at::Tensor>& lengths) {
    const at::Tensor x = input.contiguous();
    auto sizes = x.sizes().vec();
    sizes.back() /= 2;
    at::Tensor y = at::empty(sizes, x.options());  // [..., C]
    dispatch_storage(x.scalar_type(), [&]<class T>(T) {
      kernels::glu<T>(const_pointer<T>(x), pointer<T>(y), glu_shape(x, lengths), parallel_for());
    });
    ctx->save_for_backward({x, lengths.value_or(at::Tensor())});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("glu");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const std::optional<at::Tensor> lengths =
        saved[1].defined() ? std::optional(saved[1]) : std::nullopt;
    const at::Tensor grad_y = grads[0].contiguous();
    at::Tensor grad_x = at::empty_like(x);
    dispatch_storage(x.scalar_type(), [&]<class T>(T) {
      kernels::glu_backward<T>(
          const_pointer<T>(x),
          const_pointer<T>(grad_y),
          pointer<T>(grad_x),
          glu_shape(x, lengths),
          parallel_for());
    });
    return {grad_x, {}};
  }
};

void check_glu_lengths(const at::Tensor& x, const at::Tensor& lengths) {
  SEQCONV_CHECK_OP(
      "glu", x.dim() == 3, "x must be [B, T, 2C] when lengths are given, but got {}", x.sizes());
  SEQCONV_CHECK_OP(
      "glu",
      (lengths.scalar_type() == at::kLong || lengths.scalar_type() == at::kInt) &&
          lengths.device() == x.device() && lengths.dim() == 1 && lengths.size(0) == x.size(0),
      "lengths must be int64 or int32 [B] on {} with B = {}, but got {} {} on {}",
      x.device(),
      x.size(0),
      lengths.scalar_type(),
      lengths.sizes(),
      lengths.device());
  if (!lengths.is_cpu())
    return;
  const at::Tensor values = dense_lengths(lengths);
  const int64_t* length = values.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < values.numel(); ++b)
    SEQCONV_CHECK_OP(
        "glu",
        length[b] >= 0 && length[b] <= x.size(1),
        "lengths must be in [0, T = {}], but got {}",
        x.size(1),
        length[b]);
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, double p, const Seed& seed) {
  check_input("dropout", "x", x);
  check_probability("dropout", p);
  if (p == 0)
    return x;
  if (!has_kernel(x, seed))
    return dropout_reference(x, p, seed);
  return DropoutFunction::apply(x, p, static_cast<int64_t>(seed.value));
}

at::Tensor dropout_add(
    const at::Tensor& x, const at::Tensor& residual, double p, const Seed& seed) {
  check_input("dropout_add", "x", x);
  check_same_type("dropout_add", "residual", residual, x);
  check_probability("dropout_add", p);
  SEQCONV_CHECK_OP(
      "dropout_add",
      x.sizes() == residual.sizes(),
      "residual must have the shape of x {}, but got {}",
      x.sizes(),
      residual.sizes());
  if (!has_kernel(x, seed))
    return residual + dropout_reference(x, p, seed);
  return DropoutAddFunction::apply(x, residual, p, static_cast<int64_t>(seed.value));
}

at::Tensor glu(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  check_input("glu", "x", x);
  SEQCONV_CHECK_OP(
      "glu",
      x.dim() >= 1 && x.size(-1) % 2 == 0,
      "the last axis of x must be even, but got x {}",
      x.sizes());
  if (lengths)
    check_glu_lengths(x, *lengths);
  if (!has_kernel(x))
    return glu_reference(x, lengths);
  return GluFunction::apply(x, lengths ? std::optional(dense_lengths(lengths)) : std::nullopt);
}

at::Tensor activation_dropout(
    const at::Tensor& x, Activation activation, double p, const Seed& seed) {
  check_input("activation_dropout", "x", x);
  check_probability("activation_dropout", p);
  if (!has_kernel(x, seed))
    return activation_dropout_reference(x, activation, p, seed);
  return ActivationDropoutFunction::apply(x, activation, p, static_cast<int64_t>(seed.value));
}

}  // namespace seqconv::ops
