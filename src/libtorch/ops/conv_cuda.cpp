#include <ATen/Functions.h>
#include <torch/library.h>

#include "kernels/cuda/conv.h"
#include "libtorch/ops/conv_kind.h"
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
      : taps_(args), lengths_(dense_lengths(args.lengths)), mask_(mask_bytes(args.drop_mask)) {
    if (args.drop_seed)
      seed_ = on_device_of(*args.drop_seed, args.x);
    setup_.shape = conv_shape(args.x, args.logits, args.padding_left.expect_int());
    setup_.logits_of = logits_of;
    setup_.softmax = taps_.softmax();
    setup_.renormalize_edges = args.renormalize_edges;
    setup_.drop = {
        .p = args.drop_p,
        .seed = const_pointer<int64_t>(seed_),
        .mask = const_pointer<uint8_t>(mask_)};
    setup_.logits = {taps_.get().const_data_ptr(), storage_of(taps_.get().scalar_type())};
    setup_.lengths = const_pointer<int64_t>(lengths_);
  }
  const ConvSetup& get() const { return setup_; }

  const KernelTaps& taps() const { return taps_; }

 private:
  KernelTaps taps_;
  at::Tensor lengths_;
  at::Tensor mask_;
  at::Tensor seed_;
  ConvSetup setup_;
};

template <class Kind>
at::Tensor conv_cuda(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    int64_t padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const ConvArguments args = {
      .op = Kind::kForward,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .bias = bias,
      .padding_left = padding_left,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges,
      .drop_p = drop_p,
      .drop_seed = drop_seed,
      .drop_mask = drop_mask,
      .lengths = lengths};
  check_conv(args);
  const c10::cuda::CUDAGuard guard(x.device());
  const Setup setup(args, Kind::kLogitsOf);
  const at::Tensor dense = x.contiguous();
  const at::Tensor added = accumulated_or_none(bias);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        ConvForward<S>{
            .setup = setup.get(),
            .x = const_pointer<S>(dense),
            .bias = const_pointer<float>(added),
            .y = pointer<S>(y)},
        current_stream());
  });
  return y;
}

template <class Kind>
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_backward_cuda(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    GradientMask output_mask,
    int64_t padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const ConvArguments args = {
      .op = Kind::kBackward,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .padding_left = padding_left,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges,
      .drop_p = drop_p,
      .drop_seed = drop_seed,
      .drop_mask = drop_mask,
      .lengths = lengths};
  check_conv_backward(grad, args);
  const c10::cuda::CUDAGuard guard(x.device());
  const Setup setup(args, Kind::kLogitsOf);
  const at::Tensor dense = x.contiguous(), grad_y = grad.contiguous();
  const auto sums = x.options().dtype(accumulator_type(x.scalar_type()));
  const at::Tensor grad_x = empty_gradient(output_mask[0], x.sym_sizes(), x.options());
  const at::Tensor& taps = setup.taps().get();
  const at::Tensor grad_taps = empty_gradient(output_mask[1], taps.sym_sizes(), taps.options());
  const at::Tensor grad_bias = empty_gradient(output_mask[2], {x.sym_size(2)}, sums);
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    ConvBackward<S> backward = {
        .setup = setup.get(),
        .x = const_pointer<S>(dense),
        .grad_y = const_pointer<S>(grad_y),
        .grad_x = pointer_if<S>(output_mask[0], grad_x),
        .grad_logits = pointer_if<void>(output_mask[1], grad_taps),
        .grad_bias = pointer_if<float>(output_mask[2], grad_bias)};
    const at::Tensor workspace =
        at::empty({kernels::cuda::conv_backward_workspace(backward)}, sums);
    backward.workspace = pointer<float>(workspace);
    kernels::cuda::launch(backward, current_stream());
  });
  return {grad_x, setup.taps().grad_logits(grad_taps), grad_bias};
}

template <class Kind>
at::Tensor conv_step_cuda(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  const ConvArguments args = {
      .op = Kind::kStep,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .bias = bias,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges};
  check_conv_step(args, state, position);
  const c10::cuda::CUDAGuard guard(x.device());
  const Setup setup(args, Kind::kLogitsOf);
  const at::Tensor dense = x.contiguous();
  const at::Tensor added = accumulated_or_none(bias);
  const at::Tensor ring = state.contiguous();
  const at::Tensor now = on_device_of(position, x);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        ConvStep<S>{
            .setup = setup.get(),
            .x = const_pointer<S>(dense),
            .bias = const_pointer<float>(added),
            .state = pointer<S>(ring),
            .position = const_pointer<int64_t>(now),
            .y = pointer<S>(y)},
        current_stream());
  });
  write_back(ring, state);
  return y;
}

template <class Kind>
void register_cuda(torch::Library& m) {
  m.impl(Kind::kForward, conv_cuda<Kind>);
  m.impl(Kind::kBackward, conv_backward_cuda<Kind>);
  m.impl(Kind::kStep, conv_step_cuda<Kind>);
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  register_cuda<LightConvCuda>(m);
  register_cuda<DynamicConvCuda>(m);
}

}  // namespace seqconv::ops
