#include "seqconv/ops/talk.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <cmath>

#include "libtorch/ops/talk_ops.h"

namespace seqconv::ops {
namespace {

void check_offset(const TalkArguments& args, const char* name, const at::Tensor& offset) {
  TORCH_CHECK(
      offset.dim() == 3 && offset.sym_size(0) == args.x.sym_size(0) &&
          offset.sym_size(1) == args.x.sym_size(1),
      "[",
      args.op,
      "] ",
      name,
      " must be [B, T, H] with B = ",
      args.x.sym_size(0),
      ", T = ",
      args.x.sym_size(1),
      ", but got ",
      offset.sym_sizes());
  check_type_beside(args.op, name, offset, args.x);
  check_heads(args.op, args.x.sym_size(2), offset.sym_size(2));
}

at::Tensor talk_meta(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths) {
  check_talk({"talk", x, offset_left, offset_right, max_left, max_right, lengths});
  return at::empty_symint(x.sym_sizes(), x.options());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> talk_backward_meta(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths,
    GradientMask output_mask) {
  const char* const name = "talk_backward";
  check_talk({name, x, offset_left, offset_right, max_left, max_right, lengths});
  check_gradient(name, grad, x);
  return empty_talk_gradients(x, offset_left, offset_right, output_mask);
}

at::Tensor talk_step_meta(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  check_talk_step(
      {.op = "talk_step", .x = x, .offset_left = offset_left, .max_left = max_left},
      state,
      position);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

void check_talk(const TalkArguments& args) {
  check_input(args.op, args.x);
  check_offset(args, "offset_left", args.offset_left);
  TORCH_CHECK(
      args.max_left >= 0 && args.max_right >= 0,
      "[",
      args.op,
      "] max_left and max_right must not be negative, but got ",
      args.max_left,
      " and ",
      args.max_right);
  if (args.offset_right) {
    check_offset(args, "offset_right", *args.offset_right);
    TORCH_CHECK(
        args.offset_right->sym_size(2) == args.offset_left.sym_size(2) &&
            args.offset_right->scalar_type() == args.offset_left.scalar_type(),
        "[",
        args.op,
        "] offset_right must be as offset_left, ",
        args.offset_left.scalar_type(),
        " ",
        args.offset_left.sym_sizes(),
        ", but got ",
        args.offset_right->scalar_type(),
        " ",
        args.offset_right->sym_sizes());
  } else {
    TORCH_CHECK(
        args.max_right == 0,
        "[",
        args.op,
        "] max_right must be 0 without offset_right, but got ",
        args.max_right);
  }
  check_lengths(args.op, args.lengths, args.x);
}

void check_talk_step(
    const TalkArguments& args, const at::Tensor& state, const at::Tensor& position) {
  check_talk(args);
  check_state(args.op, args.x, state, position);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> empty_talk_gradients(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    const GradientMask& output_mask) {
  const auto like = [](bool wanted, const at::Tensor& tensor) {
    return empty_gradient(wanted, tensor.sym_sizes(), tensor.options());
  };
  return {
      like(output_mask[0], x),
      like(output_mask[1], offset_left),
      like(output_mask[2] && offset_right.has_value(), offset_left)};
}

kernels::TalkShape talk_shape(const TalkArguments& args) {
  return {
      .batch = args.x.size(0),
      .steps = args.x.size(1),
      .channels = args.x.size(2),
      .heads = args.offset_left.size(2),
      .max_left = args.max_left,
      .max_right = args.max_right};
}

at::Tensor talk(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkFuncOptions& options) {
  static const auto op = find_op<TalkSignature>("talk");
  return op.call(
      x, offset_left, offset_right, options.max_left, options.max_right, options.lengths);
}

at::Tensor talk_initial_state(
    int64_t rows,
    int64_t max_left,
    int64_t channels,
    const at::TensorOptions& options,
    double max_offset) {
  TORCH_CHECK(
      max_left >= 0, "[talk_initial_state] max_left must not be negative, but got ", max_left);
  TORCH_CHECK(
      max_offset >= 0 && std::isfinite(max_offset),
      "[talk_initial_state] max_offset must be finite and not negative, but got ",
      max_offset);
  const double reach = std::ceil(static_cast<double>(max_left) * max_offset);
  return at::zeros({rows, static_cast<int64_t>(reach), channels}, options);
}

at::Tensor talk_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  static const auto op = find_op<TalkStepSignature>("talk_step");
  return op.call(x, state, position, offset_left, max_left);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("talk(Tensor x, Tensor offset_left, Tensor? offset_right=None, *, int max_left, int "
        "max_right=0, Tensor? lengths=None) -> Tensor");
  m.def("talk_backward(Tensor grad, Tensor x, Tensor offset_left, Tensor? offset_right=None, *, "
        "int max_left, int max_right=0, Tensor? lengths=None, bool[3] output_mask) -> (Tensor "
        "grad_x, Tensor grad_offset_left, Tensor grad_offset_right)");
  m.def("talk_step(Tensor x, Tensor(a!) state, Tensor position, Tensor offset_left, *, int "
        "max_left) -> Tensor");
}

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  m.impl("talk", talk_meta);
  m.impl("talk_backward", talk_backward_meta);
  m.impl("talk_step", talk_step_meta);
}

}  // namespace seqconv::ops
