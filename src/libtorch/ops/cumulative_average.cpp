#include "seqconv/ops/cumulative_average.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include "libtorch/ops/cumulative_average_ops.h"

namespace seqconv::ops {
namespace {

at::Tensor average_meta(const at::Tensor& x, const OptionalTensor& lengths) {
  check_average(kAverage, x, lengths);
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor average_backward_meta(const at::Tensor& grad, const OptionalTensor& lengths) {
  check_average(kAverageBackward, grad, lengths);
  return at::empty_symint(grad.sym_sizes(), grad.options());
}

at::Tensor average_step_meta(const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  check_average_step(x, state, position);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

const c10::TypedOperatorHandle<AverageSignature>& average_op() {
  static const auto op = find_op<AverageSignature>(kAverage);
  return op;
}

const c10::TypedOperatorHandle<AverageSignature>& average_backward_op() {
  static const auto op = find_op<AverageSignature>(kAverageBackward);
  return op;
}

const c10::TypedOperatorHandle<AverageStepSignature>& average_step_op() {
  static const auto op = find_op<AverageStepSignature>(kAverageStep);
  return op;
}

kernels::AverageShape average_shape(const at::Tensor& x) {
  return {.batch = x.size(0), .steps = x.size(1), .channels = x.size(2)};
}

void check_average(const char* op, const at::Tensor& x, const OptionalTensor& lengths) {
  check_input(op, x);
  check_lengths(op, lengths, x);
}

void check_average_step(const at::Tensor& x, const at::Tensor& state, const at::Tensor& position) {
  check_input(kAverageStep, x);
  check_new_inputs(kAverageStep, x);
  SEQCONV_CHECK_OP(
      kAverageStep,
      state.scalar_type() == at::kDouble && state.dim() == 2 &&
          state.sym_size(0) == x.sym_size(0) && state.sym_size(1) == x.sym_size(2) &&
          state.device() == x.device(),
      "state must be Double [N, C] with N = {}, C = {} on {}, but got {} {} on {}",
      x.sym_size(0),
      x.sym_size(2),
      x.device(),
      state.scalar_type(),
      state.sym_sizes(),
      state.device());
  check_position(kAverageStep, position, x);
}

at::Tensor cumulative_average(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  return average_op().call(x, lengths);
}

at::Tensor average_initial_state(int64_t rows, int64_t channels, const at::TensorOptions& options) {
  return at::zeros({rows, channels}, options.dtype(at::kDouble));
}

at::Tensor cumulative_average_step(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  return average_step_op().call(x, state, position);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("cumulative_average(Tensor x, *, Tensor? lengths=None) -> Tensor");
  m.def(
      "cumulative_average_reference(Tensor x, *, Tensor? lengths=None) -> Tensor",
      cumulative_average_reference);
  m.def("cumulative_average_backward(Tensor grad, *, Tensor? lengths=None) -> Tensor");
  m.def("cumulative_average_step(Tensor x, Tensor(a!) state, Tensor position) -> Tensor");
}

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  m.impl(kAverage, average_meta);
  m.impl(kAverageBackward, average_backward_meta);
  m.impl(kAverageStep, average_step_meta);
}

}  // namespace seqconv::ops
