#include <ATen/Functions.h>
#include <torch/library.h>

#include "ops/conv_ops.h"
#include "seqconv/kernels/lightconv.h"

namespace seqconv::ops {
namespace {

at::Tensor lightconv_cpu(
    const at::Tensor& x,
    const at::Tensor& weight,
    const OptionalTensor& bias,
    int64_t padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = "lightconv";
  check_conv(
      {.op = name,
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .bias = bias,
       .padding_left = padding_left,
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const at::Tensor dense = x.contiguous(), taps = accumulated(weight);
  const at::Tensor added = bias ? accumulated(*bias) : at::Tensor();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  dispatch_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    using A = kernels::AccumulatorOf<S>;
    kernels::lightconv_forward<S>(
        {.shape = conv_shape(x, weight, padding_left),
         .softmax = is_softmax(name, normalization),
         .drop = drop.get(),
         .x = const_pointer<S>(dense),
         .weight = const_pointer<A>(taps),
         .bias = const_pointer<A>(added),
         .lengths = valid.data(),
         .y = pointer<S>(y)},
        cpu_execution());
  });
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lightconv_backward_cpu(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& weight,
    bool has_bias,
    int64_t padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = "lightconv_backward";
  check_conv_backward(
      grad,
      {.op = name,
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .padding_left = padding_left,
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const at::Tensor dense = x.contiguous(), taps = accumulated(weight);
  const at::Tensor grad_y = grad.contiguous();
  const at::Tensor grad_x = at::empty(x.sizes(), x.options());
  const at::Tensor grad_taps = at::empty(taps.sizes(), taps.options());
  const at::Tensor grad_bias = at::empty(
      {has_bias ? x.size(2) : 0},
      x.options().dtype(accumulator_type(x.scalar_type())));
  dispatch_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    using A = kernels::AccumulatorOf<S>;
    const auto shape = conv_shape(x, weight, padding_left);
    kernels::lightconv_backward<S>(
        {.shape = shape,
         .softmax = is_softmax(name, normalization),
         .drop = drop.get(),
         .x = const_pointer<S>(dense),
         .weight = const_pointer<A>(taps),
         .lengths = valid.data(),
         .grad_y = const_pointer<S>(grad_y),
         .grad_x = pointer<S>(grad_x),
         .grad_weight = pointer<A>(grad_taps)},
        cpu_execution());
    if (has_bias)
      kernels::bias_gradient(
          shape,
          valid.data(),
          const_pointer<S>(grad_y),
          pointer<A>(grad_bias),
          cpu_execution());
  });
  return {grad_x, grad_taps.to(weight.scalar_type()), grad_bias};
}

at::Tensor lightconv_step_cpu(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    const OptionalTensor& bias,
    std::string_view normalization) {
  const char* const name = "lightconv_step";
  check_conv_step(
      {.op = name,
       .x = x,
       .kernels_name = "weight",
       .kernels = weight,
       .bias = bias,
       .normalization = normalization},
      state,
      position);
  const at::Tensor dense = x.contiguous(), taps = accumulated(weight);
  const at::Tensor added = bias ? accumulated(*bias) : at::Tensor();
  const at::Tensor ring = state.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  dispatch_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    using A = kernels::AccumulatorOf<S>;
    kernels::lightconv_step<S>(
        {.shape = conv_shape(x, weight, weight.size(-1) - 1),
         .softmax = is_softmax(name, normalization),
         .x = const_pointer<S>(dense),
         .weight = const_pointer<A>(taps),
         .bias = const_pointer<A>(added),
         .state =
             {.data = pointer<S>(ring),
              .slots = state.size(1),
              .position = position_value(name, position)},
         .y = pointer<S>(y)},
        cpu_execution());
  });
  if (!ring.is_same(state))
    state.copy_(ring);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  m.impl("lightconv", lightconv_cpu);
  m.impl("lightconv_backward", lightconv_backward_cpu);
  m.impl("lightconv_step", lightconv_step_cpu);
}

}  // namespace seqconv::ops
