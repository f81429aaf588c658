#include <ATen/Functions.h>
#include <torch/library.h>

#include "ops/conv_ops.h"
#include "seqconv/kernels/dynamicconv.h"
#include "seqconv/kernels/lightconv.h"

namespace seqconv::ops {
namespace {

at::Tensor dynamicconv_cpu(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    int64_t padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = "dynamicconv";
  check_conv(
      {.op = name,
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .bias = bias,
       .padding_left = padding_left,
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const at::Tensor dense = x.contiguous(), raw = logits.contiguous();
  const at::Tensor added = bias ? accumulated(*bias) : at::Tensor();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  const auto run = [&](auto storage, auto raw_storage) {
    using S = decltype(storage);
    using L = decltype(raw_storage);
    using A = kernels::AccumulatorOf<S>;
    kernels::dynamicconv_forward<S, L>(
        {.shape = conv_shape(x, logits, padding_left),
         .softmax = is_softmax(name, normalization),
         .drop = drop.get(),
         .x = const_pointer<S>(dense),
         .logits = const_pointer<L>(raw),
         .bias = const_pointer<A>(added),
         .lengths = valid.data(),
         .y = pointer<S>(y)},
        cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), logits.scalar_type(), run);
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> dynamicconv_backward_cpu(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    bool has_bias,
    int64_t padding_left,
    std::string_view normalization,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = "dynamicconv_backward";
  check_conv_backward(
      grad,
      {.op = name,
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .padding_left = padding_left,
       .normalization = normalization,
       .drop_p = drop_p,
       .drop_seed = drop_seed,
       .drop_mask = drop_mask,
       .lengths = lengths});
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const at::Tensor dense = x.contiguous(), raw = logits.contiguous();
  const at::Tensor grad_y = grad.contiguous();
  const at::Tensor grad_x = at::empty(x.sizes(), x.options());
  const at::Tensor grad_logits = at::empty(logits.sizes(), logits.options());
  const at::Tensor grad_bias = at::empty(
      {has_bias ? x.size(2) : 0},
      x.options().dtype(accumulator_type(x.scalar_type())));
  const auto run = [&](auto storage, auto raw_storage) {
    using S = decltype(storage);
    using L = decltype(raw_storage);
    using A = kernels::AccumulatorOf<S>;
    const auto shape = conv_shape(x, logits, padding_left);
    kernels::dynamicconv_backward<S, L>(
        {.shape = shape,
         .softmax = is_softmax(name, normalization),
         .drop = drop.get(),
         .x = const_pointer<S>(dense),
         .logits = const_pointer<L>(raw),
         .lengths = valid.data(),
         .grad_y = const_pointer<S>(grad_y),
         .grad_x = pointer<S>(grad_x),
         .grad_logits = pointer<L>(grad_logits)},
        cpu_execution());
    if (has_bias)
      kernels::bias_gradient(
          shape,
          valid.data(),
          const_pointer<S>(grad_y),
          pointer<A>(grad_bias),
          cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), logits.scalar_type(), run);
  return {grad_x, grad_logits, grad_bias};
}

at::Tensor dynamicconv_step_cpu(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization) {
  const char* const name = "dynamicconv_step";
  check_conv_step(
      {.op = name,
       .x = x,
       .kernels_name = "logits",
       .kernels = logits,
       .bias = bias,
       .normalization = normalization},
      state,
      position);
  const at::Tensor dense = x.contiguous(), raw = logits.contiguous();
  const at::Tensor added = bias ? accumulated(*bias) : at::Tensor();
  const at::Tensor ring = state.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  const auto run = [&](auto storage, auto raw_storage) {
    using S = decltype(storage);
    using L = decltype(raw_storage);
    using A = kernels::AccumulatorOf<S>;
    kernels::dynamicconv_step<S, L>(
        {.shape = conv_shape(x, logits, logits.size(-1) - 1),
         .softmax = is_softmax(name, normalization),
         .x = const_pointer<S>(dense),
         .logits = const_pointer<L>(raw),
         .bias = const_pointer<A>(added),
         .state =
             {.data = pointer<S>(ring),
              .slots = state.size(1),
              .position = position_value(name, position)},
         .y = pointer<S>(y)},
        cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), logits.scalar_type(), run);
  if (!ring.is_same(state))
    state.copy_(ring);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  m.impl("dynamicconv", dynamicconv_cpu);
  m.impl("dynamicconv_backward", dynamicconv_backward_cpu);
  m.impl("dynamicconv_step", dynamicconv_step_cpu);
}

}  // namespace seqconv::ops
