#include "libtorch/ops/conv_checks.h"

#include <c10/core/GradMode.h>

namespace seqconv::ops {
namespace {

void check_shape(
    const char* op, const char* what, const at::Tensor& tensor, c10::SymIntArrayRef wanted) {
  TORCH_CHECK(
      tensor.sym_sizes() == wanted,
      "[",
      op,
      "] ",
      what,
      " = ",
      wanted,
      ", but got ",
      tensor.sym_sizes());
}

void check_device(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  TORCH_CHECK(
      tensor.device() == x.device(),
      "[",
      op,
      "] ",
      name,
      " must be on x's device ",
      x.device(),
      ", but got ",
      tensor.device());
}

void check_drop(const ConvArguments& args) {
  TORCH_CHECK(
      args.drop_p >= 0 && args.drop_p < 1,
      "[",
      args.op,
      "] drop_p must be in [0, 1), but got ",
      args.drop_p);
  TORCH_CHECK(
      !args.drop_seed || !args.drop_mask,
      "[",
      args.op,
      "] either drop_seed or drop_mask must be given, but got both");
  if (args.drop_seed) {
    check_scalar(args.op, "drop_seed", *args.drop_seed);
    check_device(args.op, "drop_seed", *args.drop_seed, args.x);
  }
  if (args.drop_mask) {
    const bool is_static = args.logits.dim() == 2;
    check_shape(
        args.op,
        is_static ? "drop_mask must be [H, K]" : "drop_mask must be [B, T, H, K]",
        *args.drop_mask,
        args.logits.sym_sizes());
    check_device(args.op, "drop_mask", *args.drop_mask, args.x);
  }
}

void check_logits(const ConvArguments& args) {
  const auto& logits = args.logits;
  const auto sizes = logits.sym_sizes();
  if (std::string_view(args.logits_name) == "weight") {
    TORCH_CHECK(logits.dim() == 2, "[", args.op, "] weight must be [H, K], but got ", sizes);
  } else {
    TORCH_CHECK(
        logits.dim() == 4 && sizes[0] == args.x.sym_size(0) && sizes[1] == args.x.sym_size(1),
        "[",
        args.op,
        "] logits must be [B, T, H, K] with B = ",
        args.x.sym_size(0),
        ", T = ",
        args.x.sym_size(1),
        ", but got ",
        sizes);
  }
  check_type_beside(args.op, args.logits_name, logits, args.x);
  check_heads(args.op, args.x.sym_size(2), logits.sym_size(-2));
  const c10::SymInt K = logits.sym_size(-1);
  TORCH_CHECK(K >= 1, "[", args.op, "] kernel size must be at least 1, but got K = ", K);
  TORCH_CHECK(
      args.padding_left >= 0 && args.padding_left < K,
      "[",
      args.op,
      "] padding_left must be in 0 .. K-1 = ",
      K - 1,
      ", but got ",
      args.padding_left);
}

}  // namespace

void check_conv(const ConvArguments& args) {
  check_input(args.op, args.x);
  check_logits(args);
  const Normalization normalization = parse_normalization(args.op, args.normalization);
  TORCH_CHECK(
      !args.renormalize_edges || normalization == Normalization::kSoftmax,
      "[",
      args.op,
      "] renormalize_edges needs normalization 'softmax', but got '",
      args.normalization,
      "'");
  if (args.bias) {
    check_shape(args.op, "bias must be [C]", *args.bias, {args.x.sym_size(2)});
    check_type_beside(args.op, "bias", *args.bias, args.x);
  }
  check_drop(args);
  check_lengths(args.op, args.lengths, args.x);
}

void check_input(const char* op, const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 3, "[", op, "] x must be [B, T, C], but got ", x.sym_sizes());
  // The CPU has no kernels for float16, a CUDA device none for float64.
  const auto type = x.scalar_type();
  const bool cpu = x.device().is_cpu(), cuda = x.device().is_cuda();
  TORCH_CHECK(
      type == at::kFloat || type == at::kBFloat16 || (!cuda && type == at::kDouble) ||
          (!cpu && type == at::kHalf),
      "[",
      op,
      "] x must be ",
      cpu        ? "Double, Float or BFloat16"
          : cuda ? "Float, BFloat16 or Half on a CUDA device"
                 : "Double, Float, BFloat16 or Half",
      ", but got ",
      type);
}

void check_type_beside(
    const char* op, const char* name, const at::Tensor& other, const at::Tensor& x) {
  const auto type = x.scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  TORCH_CHECK(
      other.scalar_type() == type || (narrow && other.scalar_type() == at::kFloat),
      "[",
      op,
      "] ",
      name,
      " must have x's type ",
      type,
      narrow ? " or Float" : "",
      ", but got ",
      other.scalar_type());
  check_device(op, name, other, x);
}

void check_heads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads) {
  TORCH_CHECK(heads >= 1, "[", op, "] heads must be at least 1, but got H = ", heads);
  TORCH_CHECK(channels >= 1, "[", op, "] channels must be at least 1, but got C = ", channels);
  TORCH_CHECK(
      channels % heads == 0,
      "[",
      op,
      "] channels must be divisible by heads, but got C = ",
      channels,
      ", H = ",
      heads);
}

void check_lengths(const char* op, const OptionalTensor& lengths, const at::Tensor& x) {
  if (!lengths)
    return;
  check_shape(op, "lengths must be [B]", *lengths, {x.sym_size(0)});
  TORCH_CHECK(
      lengths->scalar_type() == at::kLong || lengths->scalar_type() == at::kInt,
      "[",
      op,
      "] lengths must be Long or Int, but got ",
      lengths->scalar_type());
  check_device(op, "lengths", *lengths, x);
}

void check_gradient(const char* op, const at::Tensor& grad, const at::Tensor& of) {
  check_shape(op, "the gradient must be as x", grad, of.sym_sizes());
  TORCH_CHECK(
      grad.scalar_type() == of.scalar_type(),
      "[",
      op,
      "] the gradient must have x's type ",
      of.scalar_type(),
      ", but got ",
      grad.scalar_type());
  check_device(op, "the gradient", grad, of);
}

void check_new_inputs(const char* op, const at::Tensor& x) {
  TORCH_CHECK(
      x.sym_size(1) >= 1, "[", op, "] x must hold at least one new input, but got ", x.sym_sizes());
}

void check_scalar(const char* op, const char* name, const at::Tensor& scalar) {
  TORCH_CHECK(
      scalar.scalar_type() == at::kLong && scalar.sym_numel() == 1,
      "[",
      op,
      "] ",
      name,
      " must be one int64 element, but got ",
      scalar.scalar_type(),
      " ",
      scalar.sym_sizes());
}

void check_position(const char* op, const at::Tensor& position, const at::Tensor& x) {
  check_scalar(op, "position", position);
  if (!position.device().is_cpu())
    check_device(op, "position", position, x);
}

void check_state(
    const char* op, const at::Tensor& x, const at::Tensor& state, const at::Tensor& position) {
  check_new_inputs(op, x);
  TORCH_CHECK(
      state.dim() == 3 && state.sym_size(0) == x.sym_size(0) && state.sym_size(2) == x.sym_size(2),
      "[",
      op,
      "] state must be [N, slots, C] with N = ",
      x.sym_size(0),
      ", C = ",
      x.sym_size(2),
      ", but got ",
      state.sym_sizes());
  TORCH_CHECK(
      state.scalar_type() == x.scalar_type(),
      "[",
      op,
      "] state must have x's type ",
      x.scalar_type(),
      ", but got ",
      state.scalar_type());
  check_device(op, "state", state, x);
  check_position(op, position, x);
}

void check_no_tangent(const char* op, at::TensorList inputs) {
  for (const at::Tensor& input : inputs)
    TORCH_CHECK(
        !input.defined() || !input._fw_grad(/*level=*/0).defined(),
        "[",
        op,
        "] inputs must be without tangents, as forward-mode derivatives are not supported, but got "
        "one with a tangent");
}

void check_not_differentiated(const char* op, at::TensorList inputs) {
  check_no_tangent(op, inputs);
  if (!c10::GradMode::is_enabled())
    return;
  for (const at::Tensor& input : inputs)
    TORCH_CHECK(
        !input.defined() || !input.requires_grad(),
        "[",
        op,
        "] has no gradient and must be called without grad mode, but got an input that requires "
        "one");
}

Normalization parse_normalization(const char* op, std::string_view normalization) {
  for (const auto& [name, value] : EnumNames<Normalization>::kNames)
    if (name == normalization)
      return value;
  TORCH_CHECK(
      false,
      "[",
      op,
      "] normalization must be ",
      enum_list<Normalization>(),
      ", but got '",
      normalization,
      "'");
}

}  // namespace seqconv::ops
