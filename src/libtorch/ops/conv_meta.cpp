#include <ATen/Functions.h>
#include <torch/library.h>

#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"

/// What lightconv and dynamicconv answer without values: shapes and types.
namespace seqconv::ops {
namespace {

template <class Kind>
at::Tensor conv_meta(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  check_conv(
      {.op = Kind::kForward,
       .x = x,
       .logits_name = Kind::kLogits,
       .logits = logits,
       .bias = bias,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .renormalize_edges = renormalize_edges,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  return at::empty_symint(x.sym_sizes(), x.options());
}

template <class Kind>
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_backward_meta(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    GradientMask output_mask,
    c10::SymInt padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  check_conv_backward(
      grad,
      {.op = Kind::kBackward,
       .x = x,
       .logits_name = Kind::kLogits,
       .logits = logits,
       .padding_left = std::move(padding_left),
       .normalization = normalization,
       .renormalize_edges = renormalize_edges,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  return {
      empty_gradient(output_mask[0], x.sym_sizes(), x.options()),
      empty_gradient(output_mask[1], logits.sym_sizes(), logits.options()),
      empty_gradient(
          output_mask[2], {x.sym_size(2)}, x.options().dtype(accumulator_type(x.scalar_type())))};
}

template <class Kind>
at::Tensor conv_step_meta(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  check_conv_step(
      {.op = Kind::kStep,
       .x = x,
       .logits_name = Kind::kLogits,
       .logits = logits,
       .bias = bias,
       .normalization = normalization,
       .renormalize_edges = renormalize_edges},
      state,
      position);
  return at::empty_symint(x.sym_sizes(), x.options());
}

template <class Kind>
void register_meta(torch::Library& m) {
  m.impl(Kind::kForward, conv_meta<Kind>);
  m.impl(Kind::kBackward, conv_backward_meta<Kind>);
  m.impl(Kind::kStep, conv_step_meta<Kind>);
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  register_meta<LightConvKind>(m);
  register_meta<DynamicConvKind>(m);
}

}  // namespace seqconv::ops
