#include <ATen/Functions.h>

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

struct TalkCuda : TalkKind {
  static at::Tensor forward(const TalkArguments& args) {
    check(args);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Offsets offsets(args);
    const at::Tensor x = args.x.contiguous(), valid = dense_lengths(args.lengths);
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
    dispatch_cuda_storage(x.scalar_type(), [&]<class S>(S) {
      kernels::cuda::launch(
          kernels::cuda::TalkForward<S>{
              .shape = talk_shape(args),
              .offsets = offsets.get(),
              .lengths = const_pointer<int64_t>(valid),
              .x = const_pointer<S>(x),
              .y = pointer<S>(y)},
          current_stream());
    });
    return y;
  }

  static Gradients backward(
      const TalkArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Offsets offsets(args);
    const at::Tensor x = args.x.contiguous(), grad_y = grad.contiguous();
    const at::Tensor valid = dense_lengths(args.lengths);
    const Gradients grads = empty_gradients(args, wanted);
    const auto& [grad_x, grad_left, grad_right] = grads;
    const kernels::TalkShape shape = talk_shape(args);
    const at::Tensor workspace =
        at::empty({kernels::cuda::talk_backward_workspace(shape)}, x.options().dtype(at::kInt));
    dispatch_cuda_storage(x.scalar_type(), [&]<class S>(S) {
      kernels::cuda::launch(
          kernels::cuda::TalkBackward<S>{
              .shape = shape,
              .offsets = offsets.get(),
              .lengths = const_pointer<int64_t>(valid),
              .x = const_pointer<S>(x),
              .grad_y = const_pointer<S>(grad_y),
              .grad_x = pointer_if<S>(wanted[0], grad_x),
              .grad_left = pointer_if<void>(wanted[1], grad_left),
              .grad_right = pointer_if<void>(wanted[2] && offsets.right.defined(), grad_right),
              .workspace = pointer<int32_t>(workspace)},
          current_stream());
    });
    return grads;
  }

  static at::Tensor step(const TalkArguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Offsets offsets(args);
    const at::Tensor x = args.x.contiguous(), ring = state.contiguous();
    const at::Tensor now = on_device_of(position, x);
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
    dispatch_cuda_storage(x.scalar_type(), [&]<class S>(S) {
      kernels::cuda::launch(
          kernels::cuda::TalkStep<S>{
              .shape = talk_shape(args),
              .offsets = offsets.get(),
              .x = const_pointer<S>(x),
              .state = pointer<S>(ring),
              .slots = state.size(1),
              .position = const_pointer<int64_t>(now),
              .y = pointer<S>(y)},
          current_stream());
    });
    write_back(ring, state);
    return y;
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  register_impl<TalkCuda>(m);
}

}  // namespace seqconv::ops
