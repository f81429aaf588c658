#include "kernels/activation_names.h"
#include "libtorch/ops/short_conv_ops.h"

namespace seqconv::ops {
using namespace internal;
namespace {

using Args = ShortConvArguments;

bool packed(const Args& args) {
  return args.cu_seqlens.has_value();
}

/// [B, T] of x, [N] or [1, N] of a packed one.
std::vector<c10::SymInt> positions_of(const at::Tensor& x) {
  const auto sizes = x.sym_sizes();
  return {sizes.begin(), sizes.end() - 1};
}

void check_x(const Args& args) {
  const at::Tensor& x = args.x;
  SEQCONV_CHECK_OP(
      args.op,
      x.dim() == 3 || (packed(args) && x.dim() == 2),
      "x must be [B, T, C], or [N, C] beside cu_seqlens, but got {}",
      x.sym_sizes());
  SEQCONV_CHECK_OP(
      args.op,
      !packed(args) || x.dim() == 2 || x.sym_size(0) == 1,
      "x must be [N, C] or [1, N, C] beside cu_seqlens, but got {}",
      x.sym_sizes());
  check_storage(args.op, x);
  SEQCONV_CHECK_OP(
      args.op, x.sym_size(-1) >= 1, "channels must be at least 1, but got C = {}", x.sym_size(-1));
}

/// H of dynamic [.., H, K] or G of weight [G, K].
void check_groups(const Args& args, const char* name, const at::Tensor& taps, const char* letter) {
  const c10::SymInt groups = taps.sym_size(-2), C = args.x.sym_size(-1);
  SEQCONV_CHECK_OP(
      args.op,
      groups >= 1 && C % groups == 0,
      "{} must have a number of kernels that divides C = {}, but got {} = {}",
      name,
      C,
      letter,
      groups);
  check_type_beside(args.op, name, taps, args.x);
}

void check_taps(const Args& args) {
  SEQCONV_CHECK_OP(
      args.op, args.weight || args.dynamic, "taps must be in weight or dynamic, but got none");
  if (args.weight) {
    SEQCONV_CHECK_OP(
        args.op,
        args.weight->dim() == 2,
        "weight must be [G, K], but got {}",
        args.weight->sym_sizes());
    check_groups(args, "weight", *args.weight, "G");
  }
  if (args.dynamic) {
    auto wanted = positions_of(args.x);
    const auto sizes = args.dynamic->sym_sizes();
    SEQCONV_CHECK_OP(
        args.op,
        sizes.size() == wanted.size() + 2 &&
            std::equal(wanted.begin(), wanted.end(), sizes.begin()),
        "dynamic must be {} beside x {}, but got {}",
        packed(args) ? "[N, H, K]" : "[B, T, H, K]",
        args.x.sym_sizes(),
        sizes);
    check_groups(args, "dynamic", *args.dynamic, "H");
  }
  const c10::SymInt K = args.kernel_size(), left = args.left();
  SEQCONV_CHECK_OP(args.op, K >= 1, "kernel size must be at least 1, but got K = {}", K);
  if (args.weight && args.dynamic)
    SEQCONV_CHECK_OP(
        args.op,
        args.weight->sym_size(1) == K,
        "weight must have as many taps as dynamic, K = {}, but got {}",
        K,
        args.weight->sym_size(1));
  SEQCONV_CHECK_OP(
      args.op, args.dilation >= 1, "dilation must be at least 1, but got D = {}", args.dilation);
  SEQCONV_CHECK_OP(
      args.op,
      left >= 0 && left < K,
      "padding_left must be in 0 .. K-1 = {}, but got {}",
      K - 1,
      left);
}

void check_normalization(const Args& args) {
  const Normalization normalization = parse_normalization(args.op, args.normalization);
  SEQCONV_CHECK_OP(
      args.op,
      normalization == Normalization::kSoftmax || !args.renormalize_edges,
      "renormalize_edges needs normalization 'softmax', but got '{}'",
      args.normalization);
  SEQCONV_CHECK_OP(
      args.op,
      normalization == Normalization::kNone || !args.weight || !args.dynamic,
      "normalization must be 'none' for weight and dynamic together, but got '{}'",
      args.normalization);
  check_drop(args.op, args.drop, args.logits(), args.x);
}

void check_sequences(const Args& args) {
  const auto one_of = [&](bool condition) {
    SEQCONV_CHECK_OP(
        args.op,
        condition,
        "at most one of lengths, cu_seqlens and seq_idx must be given, "
        "but got several");
  };
  one_of(args.lengths.has_value() + args.cu_seqlens.has_value() + args.seq_idx.has_value() <= 1);
  if (args.lengths)
    check_lengths(args.op, args.lengths, args.x);
  if (args.cu_seqlens) {
    const at::Tensor& of = *args.cu_seqlens;
    SEQCONV_CHECK_OP(
        args.op,
        of.dim() == 1 && of.sym_size(0) >= 1,
        "cu_seqlens must be [B + 1], but got {}",
        of.sym_sizes());
    check_integers(args.op, "cu_seqlens", of, args.x);
  }
  if (args.seq_idx) {
    SEQCONV_CHECK_OP(
        args.op,
        args.seq_idx->sym_sizes() == c10::SymIntArrayRef(positions_of(args.x)),
        "seq_idx must be [B, T] of x {}, but got {}",
        args.x.sym_sizes(),
        args.seq_idx->sym_sizes());
    check_integers(args.op, "seq_idx", *args.seq_idx, args.x);
  }
}

void check_initial_state(const Args& args) {
  if (!args.initial_state)
    return;
  const at::Tensor& state = *args.initial_state;
  const c10::SymInt K = args.kernel_size(), C = args.x.sym_size(-1);
  const c10::SymInt B = packed(args) ? args.cu_seqlens->sym_size(0) - 1 : args.x.sym_size(0);
  SEQCONV_CHECK_OP(
      args.op,
      args.left() == K - 1,
      "padding_left must be K-1 = {} beside an initial state, but got {}",
      K - 1,
      args.left());
  SEQCONV_CHECK_OP(
      args.op,
      state.dim() == 3 && state.sym_size(0) == B && state.sym_size(1) == (K - 1) * args.dilation &&
          state.sym_size(2) == C,
      "initial_state must be [B, (K-1) D, C] with B = {}, (K-1) D = {}, C = {}, but got {}",
      B,
      (K - 1) * args.dilation,
      C,
      state.sym_sizes());
  check_type_as(args.op, "initial_state", state, args.x);
}

}  // namespace

void check(const ShortConvArguments& args) {
  check_x(args);
  check_taps(args);
  check_normalization(args);
  parse_activation(args.op, args.activation);
  if (args.bias)
    check_bias(args.op, *args.bias, args.x);
  check_sequences(args);
  check_initial_state(args);
}

void check_on_cuda(const ShortConvArguments& args) {
  SEQCONV_CHECK_OP(
      args.op,
      !args.renormalize_edges,
      "renormalize_edges must be false on a CUDA device, where lightconv and dynamicconv have it, "
      "but got true");
}

void check_short_conv_step(
    const ShortConvStepArguments& args, const at::Tensor& ring, const at::Tensor& positions) {
  check(args.whole(kShortConvStep));
  check_new_inputs(kShortConvStep, args.x);
  const auto N = args.x.sym_size(0), C = args.x.sym_size(2);
  const c10::SymInt wanted = (args.whole(kShortConvStep).kernel_size() - 1) * args.dilation;
  SEQCONV_CHECK_OP(
      kShortConvStep,
      ring.dim() == 3 && ring.sym_size(2) == C && ring.sym_size(1) >= wanted,
      "the state's ring must be [M, slots, C] with C = {} and (K-1) D = {} slots or more, but got "
      "{}",
      C,
      wanted,
      ring.sym_sizes());
  check_type_as(kShortConvStep, "the state's ring", ring, args.x);
  check_positions(kShortConvStep, ring, positions);
  if (!args.state_indices) {
    SEQCONV_CHECK_OP(
        kShortConvStep,
        ring.sym_size(0) == N,
        "the state must have N = {} rows without state_indices, but got {}",
        N,
        ring.sym_size(0));
    return;
  }
  const at::Tensor& rows = *args.state_indices;
  SEQCONV_CHECK_OP(
      kShortConvStep,
      rows.dim() == 1 && rows.sym_size(0) == N,
      "state_indices must be [N] with N = {}, but got {}",
      N,
      rows.sym_sizes());
  check_integers(kShortConvStep, "state_indices", rows, args.x);
}

void check_positions(const char* op, const at::Tensor& ring, const at::Tensor& positions) {
  SEQCONV_CHECK_OP(
      op,
      positions.scalar_type() == at::kLong && positions.dim() == 2 &&
          positions.sym_size(0) == ring.sym_size(0) && positions.sym_size(1) == 2,
      "the state's positions must be int64 [M, 2] with M = {}, but got {} {}",
      ring.sym_size(0),
      positions.scalar_type(),
      positions.sym_sizes());
}

void check_counts(const char* op, const at::Tensor& positions, const at::Tensor& counts) {
  SEQCONV_CHECK_OP(
      op,
      counts.dim() == 1 && counts.size(0) == positions.size(0) &&
          (counts.scalar_type() == at::kLong || counts.scalar_type() == at::kInt),
      "counts must be Long or Int [M] with M = {}, but got {} {}",
      positions.size(0),
      counts.scalar_type(),
      counts.sizes());
  check_integers(op, "counts", counts, positions);
}

ConvActivation parse_activation(const char* op, std::string_view activation) {
  if (activation == "swish")  // its other name
    return ConvActivation::kSilu;
  for (const auto& [name, value] : EnumNames<ConvActivation>::kNames)
    if (name == activation)
      return value;
  SEQCONV_CHECK_OP(
      op, false, "activation must be {}, but got '{}'", enum_list<ConvActivation>(), activation);
}

}  // namespace seqconv::ops
