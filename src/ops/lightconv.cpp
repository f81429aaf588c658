#include "seqconv/ops/lightconv.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include "ops/conv_ops.h"

namespace seqconv::ops {
namespace {

at::Tensor lightconv_meta(
    const at::Tensor& x,
    const at::Tensor& weight,
    const OptionalTensor& bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  return conv_meta(
      {.op = "lightconv",
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .bias = bias,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lightconv_backward_meta(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& weight,
    bool has_bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  return conv_backward_meta(
      grad,
      {.op = "lightconv_backward",
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths},
      has_bias);
}

at::Tensor lightconv_step_meta(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    const OptionalTensor& bias,
    std::string_view normalization) {
  check_conv_step(
      {.op = "lightconv_step",
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .bias = bias,
       .normalization = normalization},
      state,
      position);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor lightconv(
    const at::Tensor& x,
    const at::Tensor& weight,
    const LightConvFuncOptions& options) {
  static const auto op = find_op<ConvSignature>("seqconv::lightconv");
  return op.call(
      x,
      weight,
      options.bias,
      options.padding_left,
      enum_name(options.normalization),
      options.drop.p,
      options.drop.seed,
      options.drop.mask,
      options.lengths);
}

at::Tensor lightconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    Normalization normalization,
    const std::optional<at::Tensor>& bias) {
  static const auto op = find_op<ConvStepSignature>("seqconv::lightconv_step");
  return op.call(x, state, position, weight, bias, enum_name(normalization));
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("lightconv(Tensor x, Tensor weight, Tensor? bias=None, *, "
        "SymInt padding_left, str normalization='softmax', float drop_p=0.0, "
        "Tensor? drop_seed=None, Tensor? drop_mask=None, "
        "Tensor? lengths=None) -> Tensor");
  m.def("lightconv_backward(Tensor grad, Tensor x, Tensor weight, *, "
        "bool has_bias, SymInt padding_left, str normalization='softmax', "
        "float drop_p=0.0, Tensor? drop_seed=None, Tensor? drop_mask=None, "
        "Tensor? lengths=None) -> (Tensor grad_x, Tensor grad_weight, "
        "Tensor grad_bias)");
  m.def("lightconv_step(Tensor x, Tensor(a!) state, Tensor position, "
        "Tensor weight, Tensor? bias=None, *, str normalization='softmax') "
        "-> Tensor");
}

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  m.impl("lightconv", lightconv_meta);
  m.impl("lightconv_backward", lightconv_backward_meta);
  m.impl("lightconv_step", lightconv_step_meta);
}

}  // namespace seqconv::ops
