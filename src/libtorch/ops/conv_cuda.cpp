#include <ATen/Functions.h>

#include "kernels/cuda/conv.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/cuda_common.h"
#include "libtorch/ops/kernel_taps.h"

/// lightconv and dynamicconv on CUDA devices: as conv_cpu.cpp, but for what
/// would need values on the host. A length out of range is clamped.
namespace seqconv::ops {
namespace {

using kernels::cuda::ConvBackward;
using kernels::cuda::ConvForward;
using kernels::cuda::ConvSetup;
using kernels::cuda::ConvStep;
using kernels::cuda::LogitsOf;

struct LightConvCuda : LightConvKind {
  static constexpr LogitsOf kLogitsOf = LogitsOf::kHead;
};
struct DynamicConvCuda : DynamicConvKind {
  static constexpr LogitsOf kLogitsOf = LogitsOf::kPosition;
};

/// The checked arguments as kernels take them; owns what had to be copied or
/// normalised.
class Setup {
 public:
  Setup(const ConvArguments& args, LogitsOf logits_of)
      : taps(args),
        x(args.x.contiguous()),
        bias(accumulated_or_none(args.bias)),
        lengths_(dense_lengths(args.lengths)),
        mask_(mask_bytes(args.drop.mask)) {
    if (args.drop.seed)
      seed_ = on_device_of(*args.drop.seed, args.x);
    setup_.shape = conv_shape(args);
    setup_.logits_of = logits_of;
    setup_.softmax = taps.softmax();
    setup_.renormalize_edges = args.renormalize_edges;
    setup_.drop = {
        .p = args.drop.p,
        .seed = const_pointer<int64_t>(seed_),
        .mask = const_pointer<uint8_t>(mask_)};
    setup_.logits = {taps.get().const_data_ptr(), storage_of(taps.get().scalar_type())};
    setup_.lengths = const_pointer<int64_t>(lengths_);
  }
  const ConvSetup& get() const { return setup_; }

  const KernelTaps taps;
  const at::Tensor x;     ///< dense
  const at::Tensor bias;  ///< of the type of sums, or undefined

 private:
  at::Tensor lengths_;
  at::Tensor mask_;
  at::Tensor seed_;
  ConvSetup setup_;
};

template <class Kind>
struct ConvCuda : Kind {
  static at::Tensor forward(const ConvArguments& args) {
    check(args);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Setup setup(args, Kind::kLogitsOf);
    const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // [B, T, C]
    dispatch_cuda_storage(y.scalar_type(), [&]<class S>(S) {
      kernels::cuda::launch(
          ConvForward<S>{
              .setup = setup.get(),
              .x = const_pointer<S>(setup.x),
              .bias = const_pointer<float>(setup.bias),
              .y = pointer<S>(y)},
          current_stream());
    });
    return y;
  }

  static Gradients backward(
      const ConvArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Setup setup(args, Kind::kLogitsOf);
    const at::Tensor grad_y = grad.contiguous();
    const auto [grad_x, grad_taps, grad_bias] = empty_gradients(args, setup.taps.get(), wanted);
    dispatch_cuda_storage(grad.scalar_type(), [&]<class S>(S) {
      ConvBackward<S> backward = {
          .setup = setup.get(),
          .x = const_pointer<S>(setup.x),
          .grad_y = const_pointer<S>(grad_y),
          .grad_x = pointer_if<S>(wanted[0], grad_x),
          .grad_logits = pointer_if<void>(wanted[1], grad_taps),
          .grad_bias = pointer_if<float>(wanted[2], grad_bias)};
      const at::Tensor workspace =
          at::empty({kernels::cuda::conv_backward_workspace(backward)}, grad_bias.options());
      backward.workspace = pointer<float>(workspace);
      kernels::cuda::launch(backward, current_stream());
    });
    return {grad_x, setup.taps.grad_logits(grad_taps), grad_bias};
  }

  static at::Tensor step(const ConvArguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    const c10::cuda::CUDAGuard guard(args.x.device());
    const Setup setup(args, Kind::kLogitsOf);
    const at::Tensor ring = state.contiguous();
    const at::Tensor now = on_device_of(position, args.x);
    const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // [N, T', C]
    dispatch_cuda_storage(y.scalar_type(), [&]<class S>(S) {
      kernels::cuda::launch(
          ConvStep<S>{
              .setup = setup.get(),
              .x = const_pointer<S>(setup.x),
              .bias = const_pointer<float>(setup.bias),
              .state = pointer<S>(ring),
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
  register_impl<ConvCuda<LightConvCuda>>(m);
  register_impl<ConvCuda<DynamicConvCuda>>(m);
}

}  // namespace seqconv::ops
