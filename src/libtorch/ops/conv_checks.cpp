#include "libtorch/ops/conv_checks.h"

#include <c10/core/GradMode.h>

#include "kernels/normalization_names.h"

namespace seqconv::ops {
using namespace internal;
namespace {

void check_shape(
    const char* op, const char* what, const at::Tensor& tensor, c10::SymIntArrayRef wanted) {
  const auto sizes = tensor.sym_sizes();
  SEQCONV_CHECK_OP(op, sizes == wanted, "{} = {}, but got {}", what, wanted, sizes);
}

void check_device(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  const at::Device is = tensor.device(), wanted = x.device();
  SEQCONV_CHECK_OP(op, is == wanted, "{} must be on x's device {}, but got {}", name, wanted, is);
}

void check_logits(const ConvArguments& args) {
  const auto& [op, logits, x] = std::tie(args.op, args.logits, args.x);
  const auto sizes = logits.sym_sizes();
  if (std::string_view(args.logits_name) == "weight") {
    SEQCONV_CHECK_OP(op, logits.dim() == 2, "weight must be [H, K], but got {}", sizes);
  } else {
    const auto B = x.sym_size(0), T = x.sym_size(1);
    SEQCONV_CHECK_OP(
        op,
        logits.dim() == 4 && sizes[0] == B && sizes[1] == T,
        "logits must be [B, T, H, K] with B = {}, T = {}, but got {}",
        B,
        T,
        sizes);
  }
  check_type_beside(op, args.logits_name, logits, x);
  check_heads(op, x.sym_size(2), logits.sym_size(-2));
  const c10::SymInt K = logits.sym_size(-1), &left = args.padding_left;
  SEQCONV_CHECK_OP(op, K >= 1, "kernel size must be at least 1, but got K = {}", K);
  SEQCONV_CHECK_OP(
      op, left >= 0 && left < K, "padding_left must be in 0 .. K-1 = {}, but got {}", K - 1, left);
}

}  // namespace

void check_drop(
    const char* op, const DropConnect& drop, const at::Tensor& logits, const at::Tensor& x) {
  const auto& [p, seed, mask] = drop;
  SEQCONV_CHECK_OP(op, p >= 0 && p < 1, "drop_p must be in [0, 1), but got {}", p);
  SEQCONV_CHECK_OP(op, !seed || !mask, "either drop_seed or drop_mask must be given, but got both");
  if (seed) {
    check_scalar(op, "drop_seed", *seed);
    check_device(op, "drop_seed", *seed, x);
  }
  if (mask) {
    const bool is_static = logits.dim() == 2;
    check_shape(
        op,
        is_static ? "drop_mask must be [H, K]" : "drop_mask must be [B, T, H, K]",
        *mask,
        logits.sym_sizes());
    check_device(op, "drop_mask", *mask, x);
  }
}

void check_bias(const char* op, const at::Tensor& bias, const at::Tensor& x) {
  check_shape(op, "bias must be [C]", bias, {x.sym_size(-1)});
  check_type_beside(op, "bias", bias, x);
}

void check(const ConvArguments& args) {
  check_input(args.op, args.x);
  check_logits(args);
  SEQCONV_CHECK_OP(
      args.op,
      parse_normalization(args.op, args.normalization) == Normalization::kSoftmax ||
          !args.renormalize_edges,
      "renormalize_edges needs normalization 'softmax', but got '{}'",
      args.normalization);
  if (args.bias)
    check_bias(args.op, *args.bias, args.x);
  check_drop(args.op, args.drop, args.logits, args.x);
  check_lengths(args.op, args.lengths, args.x);
}

void check_step(const ConvArguments& args, const at::Tensor& state, const at::Tensor& position) {
  check(args);
  check_state(args.op, args.x, state, position);
  const c10::SymInt wanted = args.logits.sym_size(-1) - 1, slots = state.sym_size(1);
  SEQCONV_CHECK_OP(
      args.op, slots == wanted, "state must hold K-1 = {} inputs, but got {}", wanted, slots);
}

void check_input(const char* op, const at::Tensor& x) {
  SEQCONV_CHECK_OP(op, x.dim() == 3, "x must be [B, T, C], but got {}", x.sym_sizes());
  check_storage(op, x);
}

void check_storage(const char* op, const at::Tensor& x) {
  // The CPU has no kernels for float16, a CUDA device none for float64.
  const auto type = x.scalar_type();
  const bool cpu = x.device().is_cpu(), cuda = x.device().is_cuda();
  SEQCONV_CHECK_OP(
      op,
      type == at::kFloat || type == at::kBFloat16 || (!cuda && type == at::kDouble) ||
          (!cpu && type == at::kHalf),
      "x must be {}, but got {}",
      cpu        ? "Double, Float or BFloat16"
          : cuda ? "Float, BFloat16 or Half on a CUDA device"
                 : "Double, Float, BFloat16 or Half",
      type);
}

void check_type_beside(
    const char* op, const char* name, const at::Tensor& other, const at::Tensor& x) {
  const auto type = x.scalar_type(), is = other.scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  SEQCONV_CHECK_OP(
      op,
      is == type || (narrow && is == at::kFloat),
      "{} must have x's type {}{}, but got {}",
      name,
      type,
      narrow ? " or Float" : "",
      is);
  check_device(op, name, other, x);
}

void check_heads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads) {
  SEQCONV_CHECK_OP(op, heads >= 1, "heads must be at least 1, but got H = {}", heads);
  SEQCONV_CHECK_OP(op, channels >= 1, "channels must be at least 1, but got C = {}", channels);
  SEQCONV_CHECK_OP(
      op,
      channels % heads == 0,
      "channels must be divisible by heads, but got C = {}, H = {}",
      channels,
      heads);
}

void check_lengths(const char* op, const OptionalTensor& lengths, const at::Tensor& x) {
  if (!lengths)
    return;
  check_shape(op, "lengths must be [B]", *lengths, {x.sym_size(0)});
  check_integers(op, "lengths", *lengths, x);
}

void check_integers(
    const char* op, const char* name, const at::Tensor& integers, const at::Tensor& x) {
  const auto type = integers.scalar_type();
  SEQCONV_CHECK_OP(
      op, type == at::kLong || type == at::kInt, "{} must be Long or Int, but got {}", name, type);
  check_device(op, name, integers, x);
}

void check_type_as(const char* op, const char* name, const at::Tensor& other, const at::Tensor& x) {
  const auto is = other.scalar_type(), type = x.scalar_type();
  SEQCONV_CHECK_OP(op, is == type, "{} must have x's type {}, but got {}", name, type, is);
  check_device(op, name, other, x);
}

void check_gradient(const char* op, const at::Tensor& grad, const at::Tensor& of) {
  check_shape(op, "the gradient must be as x", grad, of.sym_sizes());
  check_type_as(op, "the gradient", grad, of);
}

void check_new_inputs(const char* op, const at::Tensor& x) {
  SEQCONV_CHECK_OP(
      op, x.sym_size(1) >= 1, "x must hold at least one new input, but got {}", x.sym_sizes());
}

void check_scalar(const char* op, const char* name, const at::Tensor& scalar) {
  const auto type = scalar.scalar_type();
  SEQCONV_CHECK_OP(
      op,
      type == at::kLong && scalar.sym_numel() == 1,
      "{} must be one int64 element, but got {} {}",
      name,
      type,
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
  SEQCONV_CHECK_OP(
      op,
      state.dim() == 3 && state.sym_size(0) == x.sym_size(0) && state.sym_size(2) == x.sym_size(2),
      "state must be [N, slots, C] with N = {}, C = {}, but got {}",
      x.sym_size(0),
      x.sym_size(2),
      state.sym_sizes());
  check_type_as(op, "state", state, x);
  check_position(op, position, x);
}

void check_no_tangent(const char* op, std::initializer_list<const at::Tensor*> inputs) {
  for (const at::Tensor* input : inputs)
    SEQCONV_CHECK_OP(
        op,
        input == nullptr || !input->defined() || !input->_fw_grad(/*level=*/0).defined(),
        "inputs must be without tangents, as forward-mode derivatives are not supported, but got "
        "one with a tangent");
}

void check_not_differentiated(const char* op, std::initializer_list<const at::Tensor*> inputs) {
  check_no_tangent(op, inputs);
  if (!c10::GradMode::is_enabled())
    return;
  for (const at::Tensor* input : inputs)
    SEQCONV_CHECK_OP(
        op,
        input == nullptr || !input->defined() || !input->requires_grad(),
        "has no gradient and must be called without grad mode (torch.no_grad()), but got an input "
        "that requires one");
}

Normalization parse_normalization(const char* op, std::string_view normalization) {
  for (const auto& [name, value] : EnumNames<Normalization>::kNames)
    if (name == normalization)
      return value;
  SEQCONV_CHECK_OP(
      op,
      false,
      "normalization must be {}, but got '{}'",
      enum_list<Normalization>(),
      normalization);
}

}  // namespace seqconv::ops
