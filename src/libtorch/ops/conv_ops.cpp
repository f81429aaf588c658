#include "libtorch/ops/conv_ops.h"

#include <ATen/Functions.h>

#include "libtorch/ops/kernel_arguments.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::ops {
namespace {

template <class Kind>
at::Tensor convolve(const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options) {
  return Kind::Dispatch::forward(
      {.x = x,
       .logits = logits,
       .bias = options.bias,
       .padding_left = options.padding_left,
       .normalization = enum_name(options.normalization),
       .renormalize_edges = options.renormalize_edges,
       .drop = options.drop,
       .lengths = options.lengths});
}

template <class Kind>
at::Tensor convolve_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const ConvStepOptions& options) {
  return Kind::Dispatch::step(
      {.x = x,
       .logits = logits,
       .bias = options.bias,
       .normalization = enum_name(options.normalization),
       .renormalize_edges = options.renormalize_edges},
      state,
      position);
}

template <class Kind>
void define_conv(torch::Library& m) {
  const std::string logits = Kind::kLogits;
  const std::string settings =
      "SymInt padding_left, str normalization='softmax', bool renormalize_edges=False, float "
      "drop_p=0.0, Tensor? drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None) -> ";
  m.def(concat(
            Kind::kForward,
            "(Tensor x, Tensor " + logits + ", Tensor? bias=None, *, " + settings + "Tensor")
            .c_str());
  m.def(concat(
            Kind::kBackward,
            "(Tensor grad, Tensor x, Tensor " + logits + ", *, bool[3] output_mask, " + settings,
            "(Tensor grad_x, Tensor grad_" + logits + ", Tensor grad_bias)")
            .c_str());
  m.def(concat(
            Kind::kStep,
            "(Tensor x, Tensor(a!) state, Tensor position, Tensor " + logits,
            ", Tensor? bias=None, *, str normalization='softmax', bool renormalize_edges=False) -> "
            "Tensor")
            .c_str());
}

}  // namespace

at::Tensor lightconv(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  return convolve<LightConvKind>(x, weight, options);
}

at::Tensor lightconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    const ConvStepOptions& options) {
  return convolve_step<LightConvKind>(x, state, position, weight, options);
}

at::Tensor dynamicconv(const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options) {
  return convolve<DynamicConvKind>(x, logits, options);
}

at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const ConvStepOptions& options) {
  return convolve_step<DynamicConvKind>(x, state, position, logits, options);
}

at::Tensor conv_initial_state(
    int64_t rows, int64_t kernel_size, int64_t channels, const at::TensorOptions& options) {
  SEQCONV_CHECK_OP(
      "conv_initial_state",
      kernel_size >= 1,
      "kernel size must be at least 1, but got K = {}",
      kernel_size);
  return at::zeros({rows, kernel_size - 1, channels}, options);
}

Gradients empty_gradients(
    const ConvArguments& args, const at::Tensor& logits, const GradientMask& wanted) {
  const auto sums = args.x.options().dtype(accumulator_type(args.x.scalar_type()));
  return {
      empty_gradient(wanted[0], args.x.sym_sizes(), args.x.options()),
      empty_gradient(wanted[1], logits.sym_sizes(), logits.options()),
      empty_gradient(wanted[2], {args.x.sym_size(2)}, sums)};
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  define_conv<LightConvKind>(m);
  define_conv<DynamicConvKind>(m);
}

}  // namespace seqconv::ops
