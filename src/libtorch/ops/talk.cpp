#include "seqconv/ops/talk.h"

#include <ATen/Functions.h>

#include <cmath>

#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/talk_ops.h"

namespace seqconv::ops {
namespace {

void check_offset(const TalkArguments& args, const char* name, const at::Tensor& offset) {
  const auto B = args.x.sym_size(0), T = args.x.sym_size(1);
  SEQCONV_CHECK_OP(
      args.op,
      offset.dim() == 3 && offset.sym_size(0) == B && offset.sym_size(1) == T,
      "{} must be [B, T, H] with B = {}, T = {}, but got {}",
      name,
      B,
      T,
      offset.sym_sizes());
  check_type_beside(args.op, name, offset, args.x);
  check_heads(args.op, args.x.sym_size(2), offset.sym_size(2));
}

}  // namespace

void check(const TalkArguments& args) {
  const auto& [op, x, left, right, max_left, max_right, lengths] = args;
  check_input(op, x);
  check_offset(args, "offset_left", left);
  SEQCONV_CHECK_OP(
      op,
      max_left >= 0 && max_right >= 0,
      "max_left and max_right must not be negative, but got {} and {}",
      max_left,
      max_right);
  if (right) {
    check_offset(args, "offset_right", *right);
    SEQCONV_CHECK_OP(
        op,
        right->sym_size(2) == left.sym_size(2) && right->scalar_type() == left.scalar_type(),
        "offset_right must be as offset_left, {} {}, but got {} {}",
        left.scalar_type(),
        left.sym_sizes(),
        right->scalar_type(),
        right->sym_sizes());
  } else {
    SEQCONV_CHECK_OP(
        op, max_right == 0, "max_right must be 0 without offset_right, but got {}", max_right);
  }
  check_lengths(op, lengths, x);
}

void check_step(const TalkArguments& args, const at::Tensor& state, const at::Tensor& position) {
  check(args);
  check_state(args.op, args.x, state, position);
}

Gradients empty_gradients(const TalkArguments& args, const GradientMask& wanted) {
  const auto like = [](bool is_wanted, const at::Tensor& tensor) {
    return empty_gradient(is_wanted, tensor.sym_sizes(), tensor.options());
  };
  return {
      like(wanted[0], args.x),
      like(wanted[1], args.offset_left),
      like(wanted[2] && args.offset_right.has_value(), args.offset_left)};
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

at::Tensor TalkDispatch::forward(const TalkArguments& args) {
  static const auto op = find_op<decltype(TalkEntry<TalkKind>::forward)>(TalkKind::kForward);
  return op.call(
      args.x, args.offset_left, args.offset_right, args.max_left, args.max_right, args.lengths);
}

Gradients TalkDispatch::backward(
    const TalkArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
  static const auto op = find_op<decltype(TalkEntry<TalkKind>::backward)>(TalkKind::kBackward);
  return op.call(
      grad,
      args.x,
      args.offset_left,
      args.offset_right,
      args.max_left,
      args.max_right,
      args.lengths,
      wanted);
}

at::Tensor TalkDispatch::step(
    const TalkArguments& args, at::Tensor& state, const at::Tensor& position) {
  static const auto op = find_op<decltype(TalkEntry<TalkKind>::step)>(TalkKind::kStep);
  return op.call(args.x, state, position, args.offset_left, args.max_left);
}

at::Tensor talk(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkOptions& options) {
  return TalkDispatch::forward(
      {.x = x,
       .offset_left = offset_left,
       .offset_right = offset_right,
       .max_left = options.max_left,
       .max_right = options.max_right,
       .lengths = options.lengths});
}

at::Tensor talk_initial_state(
    int64_t rows,
    int64_t max_left,
    int64_t channels,
    const at::TensorOptions& options,
    double max_offset) {
  constexpr const char* op = "talk_initial_state";
  SEQCONV_CHECK_OP(op, max_left >= 0, "max_left must not be negative, but got {}", max_left);
  SEQCONV_CHECK_OP(
      op,
      max_offset >= 0 && std::isfinite(max_offset),
      "max_offset must be finite and not negative, but got {}",
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
  return TalkDispatch::step(
      {.x = x, .offset_left = offset_left, .max_left = max_left}, state, position);
}

namespace {

/// The definition as an operator: every transform of PyTorch's goes through it.
struct TalkByDefinition : TalkKind {
  static at::Tensor forward(const TalkArguments& args) {
    check(args);
    return talk_reference(
        args.x, args.offset_left, args.offset_right, {args.max_left, args.max_right, args.lengths});
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("talk(Tensor x, Tensor offset_left, Tensor? offset_right=None, *, int max_left, int "
        "max_right=0, Tensor? lengths=None) -> Tensor");
  m.def("talk_backward(Tensor grad, Tensor x, Tensor offset_left, Tensor? offset_right=None, *, "
        "int max_left, int max_right=0, Tensor? lengths=None, bool[3] output_mask) -> (Tensor "
        "grad_x, Tensor grad_offset_left, Tensor grad_offset_right)");
  m.def(
      "talk_reference(Tensor x, Tensor offset_left, Tensor? offset_right=None, *, int max_left, "
      "int max_right=0, Tensor? lengths=None) -> Tensor",
      TalkEntry<TalkByDefinition>::forward);
  m.def("talk_step(Tensor x, Tensor(a!) state, Tensor position, Tensor offset_left, *, int "
        "max_left) -> Tensor");
}

}  // namespace seqconv::ops
