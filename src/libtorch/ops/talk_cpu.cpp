#include <ATen/Functions.h>
#include <torch/library.h>

#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/talk_ops.h"

namespace seqconv::ops {
namespace {

at::Tensor talk_cpu(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths) {
  const TalkArguments args = {"talk", x, offset_left, offset_right, max_left, max_right, lengths};
  check_talk(args);
  const LengthValues valid(args.op, lengths, x);
  const at::Tensor dense = x.contiguous(), left = offset_left.contiguous();
  const at::Tensor right = dense_or_none(offset_right);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  const auto run = [&](auto storage, auto offset_storage) {
    using S = decltype(storage);
    using O = decltype(offset_storage);
    kernels::talk_forward<S, O>(
        {.shape = talk_shape(args),
         .x = const_pointer<S>(dense),
         .offset_left = const_pointer<O>(left),
         .offset_right = const_pointer<O>(right),
         .lengths = valid.data(),
         .y = pointer<S>(y)},
        cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), offset_left.scalar_type(), run);
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> talk_backward_cpu(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths,
    GradientMask output_mask) {
  const TalkArguments args = {
      "talk_backward", x, offset_left, offset_right, max_left, max_right, lengths};
  check_talk(args);
  check_gradient(args.op, grad, x);
  const LengthValues valid(args.op, lengths, x);
  const at::Tensor dense = x.contiguous(), left = offset_left.contiguous();
  const at::Tensor right = dense_or_none(offset_right);
  const at::Tensor grad_y = grad.contiguous();
  const auto grads = empty_talk_gradients(x, offset_left, offset_right, output_mask);
  const auto run = [&](auto storage, auto offset_storage) {
    using S = decltype(storage);
    using O = decltype(offset_storage);
    kernels::talk_backward<S, O>(
        {.shape = talk_shape(args),
         .x = const_pointer<S>(dense),
         .offset_left = const_pointer<O>(left),
         .offset_right = const_pointer<O>(right),
         .lengths = valid.data(),
         .grad_y = const_pointer<S>(grad_y),
         .grad_x = pointer_if<S>(output_mask[0], std::get<0>(grads)),
         .grad_offset_left = pointer_if<O>(output_mask[1], std::get<1>(grads)),
         .grad_offset_right = pointer_if<O>(output_mask[2] && right.defined(), std::get<2>(grads))},
        cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), offset_left.scalar_type(), run);
  return grads;
}

/// Offsets must not reach further back than the ring.
void check_reach(const TalkArguments& args, const at::Tensor& offset_left, int64_t slots) {
  const at::Tensor wide = accumulated(offset_left);
  dispatch_storage(wide.scalar_type(), [&](auto storage) {
    using A = decltype(storage);
    if constexpr (!std::is_same_v<A, kernels::BFloat16>) {
      const A* const values = const_pointer<A>(wide);
      for (int64_t i = 0; i < wide.numel(); ++i)
        TORCH_CHECK(
            !(values[i] * static_cast<A>(args.max_left) > static_cast<A>(slots)),
            "[",
            args.op,
            "] offset_left must not exceed max_offset = ",
            static_cast<double>(slots) / static_cast<double>(args.max_left),
            " (state of ",
            slots,
            " inputs, max_left = ",
            args.max_left,
            "), but got ",
            values[i]);
    }
  });
}

at::Tensor talk_step_cpu(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  const TalkArguments args = {
      .op = "talk_step", .x = x, .offset_left = offset_left, .max_left = max_left};
  check_talk_step(args, state, position);
  const at::Tensor dense = x.contiguous(), left = offset_left.contiguous();
  check_reach(args, left, state.size(1));
  const at::Tensor ring = state.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  const auto run = [&](auto storage, auto offset_storage) {
    using S = decltype(storage);
    using O = decltype(offset_storage);
    kernels::talk_step<S, O>(
        {.shape = talk_shape(args),
         .x = const_pointer<S>(dense),
         .offset_left = const_pointer<O>(left),
         .state =
             {.data = pointer<S>(ring),
              .slots = state.size(1),
              .position = position_value(args.op, position)},
         .y = pointer<S>(y)},
        cpu_execution());
  };
  dispatch_storage_pair(x.scalar_type(), offset_left.scalar_type(), run);
  write_back(ring, state);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  m.impl("talk", talk_cpu);
  m.impl("talk_backward", talk_backward_cpu);
  m.impl("talk_step", talk_step_cpu);
}

}  // namespace seqconv::ops
