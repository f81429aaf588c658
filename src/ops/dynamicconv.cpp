#include "seqconv/ops/dynamicconv.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include "ops/conv_ops.h"

namespace seqconv::ops {
namespace {

at::Tensor dynamicconv_meta(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  return conv_meta(
      {.op = "dynamicconv",
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .bias = bias,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> dynamicconv_backward_meta(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    bool has_bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  return conv_backward_meta(
      grad,
      {.op = "dynamicconv_backward",
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths},
      has_bias);
}

at::Tensor dynamicconv_step_meta(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization) {
  check_conv_step(
      {.op = "dynamicconv_step",
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .bias = bias,
       .normalization = normalization},
      state,
      position);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor dynamicconv(
    const at::Tensor& x,
    const at::Tensor& logits,
    const DynamicConvFuncOptions& options) {
  static const auto op = find_op<ConvSignature>("seqconv::dynamicconv");
  return op.call(
      x,
      logits,
      options.bias,
      options.padding_left,
      enum_name(options.normalization),
      options.drop.p,
      options.drop.seed,
      options.drop.mask,
      options.lengths);
}

at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    Normalization normalization,
    const std::optional<at::Tensor>& bias) {
  static const auto op =
      find_op<ConvStepSignature>("seqconv::dynamicconv_step");
  return op.call(x, state, position, logits, bias, enum_name(normalization));
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("dynamicconv(Tensor x, Tensor logits, Tensor? bias=None, *, "
        "SymInt padding_left, str normalization='softmax', float drop_p=0.0, "
        "Tensor? drop_seed=None, Tensor? drop_mask=None, "
        "Tensor? lengths=None) -> Tensor");
  m.def("dynamicconv_backward(Tensor grad, Tensor x, Tensor logits, *, "
        "bool has_bias, SymInt padding_left, str normalization='softmax', "
        "float drop_p=0.0, Tensor? drop_seed=None, Tensor? drop_mask=None, "
        "Tensor? lengths=None) -> (Tensor grad_x, Tensor grad_logits, "
        "Tensor grad_bias)");
  m.def("dynamicconv_step(Tensor x, Tensor(a!) state, Tensor position, "
        "Tensor logits, Tensor? bias=None, *, str normalization='softmax') "
        "-> Tensor");
}

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  m.impl("dynamicconv", dynamicconv_meta);
  m.impl("dynamicconv_backward", dynamicconv_backward_meta);
  m.impl("dynamicconv_step", dynamicconv_step_meta);
}

}  // namespace seqconv::ops
