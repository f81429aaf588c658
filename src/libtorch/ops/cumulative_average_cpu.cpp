#include <ATen/Functions.h>
#include <torch/library.h>

#include "libtorch/ops/cumulative_average_ops.h"
#include "libtorch/ops/kernel_arguments.h"

namespace seqconv::ops {
namespace {

/// Either direction: `run` is called with the kernel's arguments.
template <class Run>
at::Tensor average(
    const char* op, const at::Tensor& x, const OptionalTensor& lengths, const Run& run) {
  check_average(op, x, lengths);
  const LengthValues valid(op, lengths, x);
  const at::Tensor dense = x.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  dispatch_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    run(kernels::CumulativeAverage<S>{
        .shape = average_shape(x),
        .lengths = valid.data(),
        .x = const_pointer<S>(dense),
        .y = pointer<S>(y)});
  });
  return y;
}

at::Tensor average_cpu(const at::Tensor& x, const OptionalTensor& lengths) {
  return average(kAverage, x, lengths, [](const auto& args) {
    kernels::cumulative_average(args, cpu_execution().parallel_for);
  });
}

at::Tensor average_backward_cpu(const at::Tensor& grad, const OptionalTensor& lengths) {
  return average(kAverageBackward, grad, lengths, [](const auto& args) {
    kernels::cumulative_average_backward(args, cpu_execution().parallel_for);
  });
}

at::Tensor average_step_cpu(const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  check_average_step(x, state, position);
  const at::Tensor dense = x.contiguous(), sums = state.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  dispatch_storage(x.scalar_type(), [&](auto storage) {
    using S = decltype(storage);
    kernels::cumulative_average_step<S>(
        {.shape = average_shape(x),
         .position = position_value(kAverageStep, position),
         .x = const_pointer<S>(dense),
         .sums = pointer<double>(sums),
         .y = pointer<S>(y)},
        cpu_execution().parallel_for);
  });
  write_back(sums, state);
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  m.impl(kAverage, average_cpu);
  m.impl(kAverageBackward, average_backward_cpu);
  m.impl(kAverageStep, average_step_cpu);
}

}  // namespace seqconv::ops
