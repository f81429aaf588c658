#include "libtorch/ops/conv_ops.h"

#include <ATen/Functions.h>

#include "seqconv/ops/lightconv.h"

namespace seqconv::ops {

void check_conv_backward(const at::Tensor& grad, const ConvArguments& args) {
  check_conv(args);
  check_gradient(args.op, grad, args.x);
}

void check_conv_step(
    const ConvArguments& args, const at::Tensor& state, const at::Tensor& position) {
  check_conv(args);
  check_state(args.op, args.x, state, position);
  const c10::SymInt slots = args.logits.sym_size(-1) - 1;
  TORCH_CHECK(
      state.sym_size(1) == slots,
      "[",
      args.op,
      "] state must hold K-1 = ",
      slots,
      " inputs, but got ",
      state.sym_size(1));
}

at::Tensor empty_gradient(
    bool wanted, c10::SymIntArrayRef sizes, const at::TensorOptions& options) {
  return wanted ? at::empty_symint(sizes, options) : at::empty({0}, options);
}

at::Tensor conv_initial_state(
    int64_t rows, int64_t kernel_size, int64_t channels, const at::TensorOptions& options) {
  TORCH_CHECK(
      kernel_size >= 1,
      "[conv_initial_state] kernel size must be at least 1, but got K = ",
      kernel_size);
  return at::zeros({rows, kernel_size - 1, channels}, options);
}

}  // namespace seqconv::ops
