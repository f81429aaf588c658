#include <ATen/Functions.h>
#include <torch/library.h>

#include "kernels/cuda/cumulative_average.h"
#include "libtorch/ops/cuda_common.h"
#include "libtorch/ops/cumulative_average_ops.h"

/// cumulative_average on CUDA devices: as cumulative_average_cpu.cpp, but for
/// what would need values on the host. A length out of range is clamped.
namespace seqconv::ops {
namespace {

using kernels::cuda::AverageOrder;

at::Tensor average(
    const char* op, const at::Tensor& x, const OptionalTensor& lengths, AverageOrder order) {
  check_average(op, x, lengths);
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor dense = x.contiguous(), valid = dense_lengths(lengths);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  const kernels::AverageShape shape = average_shape(x);
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    const at::Tensor workspace = at::empty(
        {kernels::cuda::cumulative_average_workspace<S>(shape)}, x.options().dtype(at::kDouble));
    kernels::cuda::launch(
        kernels::cuda::CumulativeAverage<S>{
            .order = order,
            .shape = shape,
            .lengths = const_pointer<int64_t>(valid),
            .x = const_pointer<S>(dense),
            .y = pointer<S>(y),
            .workspace = pointer<double>(workspace)},
        current_stream());
  });
  return y;
}

at::Tensor average_cuda(const at::Tensor& x, const OptionalTensor& lengths) {
  return average(kAverage, x, lengths, AverageOrder::kForward);
}

at::Tensor average_backward_cuda(const at::Tensor& grad, const OptionalTensor& lengths) {
  return average(kAverageBackward, grad, lengths, AverageOrder::kBackward);
}

at::Tensor average_step_cuda(const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  check_average_step(x, state, position);
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor dense = x.contiguous(), sums = state.contiguous();
  const at::Tensor now = on_device_of(position, x);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  dispatch_cuda_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cuda::launch(
        kernels::cuda::CumulativeAverageStep<S>{
            .shape = average_shape(x),
            .position = const_pointer<int64_t>(now),
            .x = const_pointer<S>(dense),
            .sums = pointer<double>(sums),
            .y = pointer<S>(y)},
        current_stream());
  });
  write_back(sums, state);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  m.impl(kAverage, average_cuda);
  m.impl(kAverageBackward, average_backward_cuda);
  m.impl(kAverageStep, average_step_cuda);
}

}  // namespace seqconv::ops
