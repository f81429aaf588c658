#include <ATen/Functions.h>
#include <torch/library.h>

#include "kernels/cuda/talk.h"
#include "libtorch/ops/cuda_common.h"
#include "libtorch/ops/talk_ops.h"

/// talk on CUDA devices: as talk_cpu.cpp, but for what would need values on
/// the host. A length out of range is clamped, and a step's window that
/// reaches further back than the state is cut there.
namespace seqconv::ops {
namespace {

/// The offsets as kernels take them; owns what had to be copied.
struct Offsets {
  at::Tensor left;
  at::Tensor right;

  explicit Offsets(const TalkArguments& args)
      : left(args.offset_left.contiguous()), right(dense_or_none(args.offset_right)) {}

  kernels::cuda::TalkOffsets get() const {
    return {
        .left = left.const_data_ptr(),
        .right = right.defined() ? right.const_data_ptr() : nullptr,
        .storage = storage_of(left.scalar_type())};
  }
};

at::Tensor talk_cuda(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths) {
  const TalkArguments args = {"talk", x, offset_left, offset_right, max_left, max_right, lengths};
  check_talk(args);
  const c10::cuda::CUDAGuard guard(x.device());
  const Offsets offsets(args);
  const at::Tensor dense = x.contiguous(), valid = dense_lengths(lengths);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        kernels::cuda::TalkForward<S>{
            .shape = talk_shape(args),
            .offsets = offsets.get(),
            .lengths = const_pointer<int64_t>(valid),
            .x = const_pointer<S>(dense),
            .y = pointer<S>(y)},
        current_stream());
  });
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> talk_backward_cuda(
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
  const c10::cuda::CUDAGuard guard(x.device());
  const Offsets offsets(args);
  const at::Tensor dense = x.contiguous(), grad_y = grad.contiguous();
  const at::Tensor valid = dense_lengths(lengths);
  const auto grads = empty_talk_gradients(x, offset_left, offset_right, output_mask);
  const kernels::TalkShape shape = talk_shape(args);
  const at::Tensor workspace =
      at::empty({kernels::cuda::talk_backward_workspace(shape)}, x.options().dtype(at::kInt));
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        kernels::cuda::TalkBackward<S>{
            .shape = shape,
            .offsets = offsets.get(),
            .lengths = const_pointer<int64_t>(valid),
            .x = const_pointer<S>(dense),
            .grad_y = const_pointer<S>(grad_y),
            .grad_x = pointer_if<S>(output_mask[0], std::get<0>(grads)),
            .grad_left = pointer_if<void>(output_mask[1], std::get<1>(grads)),
            .grad_right =
                pointer_if<void>(output_mask[2] && offset_right.has_value(), std::get<2>(grads)),
            .workspace = pointer<int32_t>(workspace)},
        current_stream());
  });
  return grads;
}

at::Tensor talk_step_cuda(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  const TalkArguments args = {
      .op = "talk_step", .x = x, .offset_left = offset_left, .max_left = max_left};
  check_talk_step(args, state, position);
  const c10::cuda::CUDAGuard guard(x.device());
  const Offsets offsets(args);
  const at::Tensor dense = x.contiguous(), ring = state.contiguous();
  const at::Tensor now = on_device_of(position, x);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        kernels::cuda::TalkStep<S>{
            .shape = talk_shape(args),
            .offsets = offsets.get(),
            .x = const_pointer<S>(dense),
            .state = pointer<S>(ring),
            .slots = state.size(1),
            .position = const_pointer<int64_t>(now),
            .y = pointer<S>(y)},
        current_stream());
  });
  write_back(ring, state);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  m.impl("talk", talk_cuda);
  m.impl("talk_backward", talk_backward_cuda);
  m.impl("talk_step", talk_step_cuda);
}

}  // namespace seqconv::ops
