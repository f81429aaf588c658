#include <ATen/Functions.h>

#include "kernels/activation_names.h"
#include "kernels/normalization_names.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/short_conv_ops.h"

namespace seqconv::ops {
namespace {

constexpr const char* kFinalState = "short_conv_final_state";
constexpr const char* kLastInputs = "short_conv_last_inputs";
constexpr const char* kStateOf = "short_conv_state_of";
constexpr const char* kInitialState = "short_conv_initial_state";

void check_width(const char* op, int64_t kernel_size, int64_t dilation) {
  SEQCONV_CHECK_OP(
      op, kernel_size >= 1, "kernel size must be at least 1, but got K = {}", kernel_size);
  SEQCONV_CHECK_OP(op, dilation >= 1, "dilation must be at least 1, but got D = {}", dilation);
}

/// The last L inputs of sequences of `length` [B, 1] rows of x [N, C] from `first`
/// [B, 1] on, behind those before them, [B, L, C] or none: zeros.
at::Tensor last_rows(
    const at::Tensor& x,
    const at::Tensor& first,
    const at::Tensor& length,
    const c10::SymInt& L,
    const OptionalTensor& before) {
  const auto B = length.sym_size(0), C = x.sym_size(1);
  const at::Tensor t = length - L + at::arange(c10::Scalar(L), length.options());  // [B, L]
  const at::Tensor is_old = t.lt(0).unsqueeze(2);
  const at::Tensor rows = (first + t.clamp_min(0)).clamp_max(x.sym_size(0) - 1);
  const at::Tensor fresh = x.index_select(0, rows.reshape({-1})).reshape_symint({B, L, C});
  if (!before)
    return fresh.masked_fill(is_old, 0);
  const at::Tensor places =
      (t + L).clamp_min(0).clamp_max(L - 1).unsqueeze(2).expand_symint({B, L, C});
  return at::where(is_old, before->gather(1, places), fresh);
}

at::Tensor final_state(
    const at::Tensor& x,
    int64_t kernel_size,
    int64_t dilation,
    const OptionalTensor& initial_state,
    const OptionalTensor& lengths,
    const OptionalTensor& cu_seqlens) {
  check_width(kFinalState, kernel_size, dilation);
  SEQCONV_CHECK_OP(
      kFinalState,
      x.dim() == 3 || (x.dim() == 2 && cu_seqlens),
      "x must be [B, T, C], or [N, C] beside cu_seqlens, but got {}",
      x.sym_sizes());
  const c10::SymInt B = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : x.sym_size(0);
  const c10::SymInt L = (kernel_size - 1) * dilation, C = x.sym_size(-1);
  if (initial_state)
    SEQCONV_CHECK_OP(
        kFinalState,
        initial_state->sym_sizes() == c10::SymIntArrayRef({B, L, C}),
        "initial_state must be [B, (K-1) D, C] with B = {}, (K-1) D = {}, C = {}, but got {}",
        B,
        L,
        C,
        initial_state->sym_sizes());
  const c10::SymInt T = x.sym_size(-2);
  const auto before = [&] {
    return initial_state ? *initial_state : at::zeros_symint({B, L, C}, x.options());
  };
  if (x.sym_numel() == 0 || L == 0)
    return before().clone();
  const at::Tensor rows = x.reshape_symint({-1, C});
  if (cu_seqlens) {
    const at::Tensor offsets = cu_seqlens->to(at::kLong);
    const at::Tensor first = offsets.slice_symint(0, 0, B).unsqueeze(1);
    return last_rows(
        rows, first, offsets.slice_symint(0, 1).unsqueeze(1) - first, L, initial_state);
  }
  if (lengths) {
    check_lengths(kFinalState, lengths, x);
    const at::Tensor length = lengths->to(at::kLong).unsqueeze(1);
    const at::Tensor first = at::arange(c10::Scalar(B), length.options()).unsqueeze(1) * T;
    return last_rows(rows, first, length, L, initial_state);
  }
  if (T >= L)
    return x.slice_symint(1, T - L).clone();
  return at::cat({before().slice_symint(1, T), x}, 1);
}

at::Tensor last_inputs(const at::Tensor& ring, const at::Tensor& positions, int64_t count) {
  check_positions(kLastInputs, ring, positions);
  SEQCONV_CHECK_OP(
      kLastInputs,
      count >= 0 && count <= ring.size(1),
      "count must be in 0 .. {}, the slots of the state's ring, but got {}",
      ring.size(1),
      count);
  if (count == 0)
    return ring.slice(1, 0, 0).clone();
  const at::Tensor number =
      positions.slice(1, 0, 1) - count + at::arange(count, positions.options());  // [M, count]
  const at::Tensor slots =
      number.remainder(ring.size(1)).unsqueeze(2).expand({-1, -1, ring.size(2)});
  return ring.gather(1, slots).masked_fill(number.lt(0).unsqueeze(2), 0);
}

void rollback(at::Tensor& positions, const at::Tensor& counts, int64_t further) {
  check_counts(kShortConvRollback, positions, counts);
  const at::Tensor back = counts.to(at::kLong).contiguous();
  const at::Tensor seen = positions.contiguous();
  const auto* const count = back.const_data_ptr<int64_t>();
  auto* const at = seen.mutable_data_ptr<int64_t>();
  for (int64_t m = 0; m < back.size(0); ++m) {
    const int64_t most = std::min(at[2 * m], at[2 * m] - (at[2 * m + 1] - further));
    SEQCONV_CHECK_OP(
        kShortConvRollback,
        count[m] >= 0 && count[m] <= most,
        "counts must be in 0 .. {}, the inputs of row {} that the state can take back, but got {}",
        std::max<int64_t>(0, most),
        m,
        count[m]);
  }
  for (int64_t m = 0; m < back.size(0); ++m)
    at[2 * m] -= count[m];
  write_back(seen, positions);
}

/// The definition as an operator: every transform of PyTorch's goes through it.
struct ShortConvByDefinition {
  static at::Tensor forward(const ShortConvArguments& args) {
    check(args);
    return short_conv_reference(
        args.x, options_of(args, args.weight, args.dynamic, args.bias, args.initial_state));
  }
};

}  // namespace

at::Tensor ShortConvDispatch::forward(const ShortConvArguments& a) {
  static const auto op = find_op<decltype(ShortConvEntry<ShortConvKind>::forward)>(kShortConv);
  return op.call(
      a.x,
      a.weight,
      a.dynamic,
      a.bias,
      a.initial_state,
      a.dilation,
      a.padding_left,
      a.activation,
      a.residual,
      a.normalization,
      a.renormalize_edges,
      a.drop.p,
      a.drop.seed,
      a.drop.mask,
      a.lengths,
      a.cu_seqlens,
      a.seq_idx);
}

ShortConvGradients ShortConvDispatch::backward(
    const ShortConvArguments& a, const at::Tensor& grad, const ShortConvMask& wanted) {
  static const auto op =
      find_op<decltype(ShortConvEntry<ShortConvKind>::backward)>(kShortConvBackward);
  return op.call(
      grad,
      a.x,
      a.weight,
      a.dynamic,
      a.bias,
      a.initial_state,
      wanted,
      a.dilation,
      a.padding_left,
      a.activation,
      a.residual,
      a.normalization,
      a.renormalize_edges,
      a.drop.p,
      a.drop.seed,
      a.drop.mask,
      a.lengths,
      a.cu_seqlens,
      a.seq_idx);
}

at::Tensor ShortConvDispatch::step(
    const ShortConvStepArguments& a, at::Tensor& ring, at::Tensor& positions) {
  static const auto op = find_op<decltype(ShortConvEntry<ShortConvKind>::step)>(kShortConvStep);
  return op.call(
      a.x,
      ring,
      positions,
      a.weight,
      a.dynamic,
      a.bias,
      a.dilation,
      a.activation,
      a.residual,
      a.normalization,
      a.renormalize_edges,
      a.state_indices,
      a.lengths);
}

ShortConvGradients empty_gradients(const ShortConvArguments& args, const ShortConvMask& wanted) {
  const auto like = [](bool is_wanted, const OptionalTensor& tensor, const at::Tensor& x) {
    return tensor ? empty_gradient(is_wanted, tensor->sym_sizes(), tensor->options())
                  : at::empty({0}, x.options());
  };
  return {
      empty_gradient(wanted[0], args.x.sym_sizes(), args.x.options()),
      like(wanted[1], args.weight, args.x),
      like(wanted[2], args.dynamic, args.x),
      like(wanted[3], args.bias, args.x),
      like(wanted[4], args.initial_state, args.x)};
}

ShortConvOptions options_of(
    const ShortConvArguments& args,
    const OptionalTensor& weight,
    const OptionalTensor& dynamic,
    const OptionalTensor& bias,
    const OptionalTensor& initial_state) {
  std::optional<int64_t> left;
  if (args.padding_left)
    left = args.padding_left->guard_int(__FILE__, __LINE__);
  return {
      .weight = weight,
      .dynamic = dynamic,
      .bias = bias,
      .initial_state = initial_state,
      .dilation = args.dilation,
      .padding_left = left,
      .activation = parse_activation(args.op, args.activation),
      .residual = args.residual,
      .normalization = parse_normalization(args.op, args.normalization),
      .renormalize_edges = args.renormalize_edges,
      .drop = args.drop,
      .lengths = args.lengths,
      .cu_seqlens = args.cu_seqlens,
      .seq_idx = args.seq_idx};
}

ShortConvArguments arguments_of(const at::Tensor& x, const ShortConvOptions& options) {
  std::optional<c10::SymInt> left;
  if (options.padding_left)
    left = *options.padding_left;
  return {
      .op = kShortConv,
      .x = x,
      .weight = options.weight,
      .dynamic = options.dynamic,
      .bias = options.bias,
      .initial_state = options.initial_state,
      .dilation = options.dilation,
      .padding_left = left,
      .activation = enum_name(options.activation),
      .residual = options.residual,
      .normalization = enum_name(options.normalization),
      .renormalize_edges = options.renormalize_edges,
      .drop = options.drop,
      .lengths = options.lengths,
      .cu_seqlens = options.cu_seqlens,
      .seq_idx = options.seq_idx};
}

at::Tensor short_conv(const at::Tensor& x, const ShortConvOptions& options) {
  return ShortConvDispatch::forward(arguments_of(x, options));
}

at::Tensor short_conv_final_state(
    const at::Tensor& x, int64_t kernel_size, const ShortConvStateOptions& options) {
  return final_state(
      x, kernel_size, options.dilation, options.initial_state, options.lengths, options.cu_seqlens);
}

ShortConvState short_conv_initial_state(
    int64_t rows,
    int64_t kernel_size,
    int64_t channels,
    const at::TensorOptions& options,
    int64_t dilation,
    int64_t rollback) {
  check_width(kInitialState, kernel_size, dilation);
  SEQCONV_CHECK_OP(
      kInitialState,
      rows >= 0 && channels >= 1 && rollback >= 0,
      "rows, channels and rollback must be at least 0, 1 and 0, but got {}, {} and {}",
      rows,
      channels,
      rollback);
  return {
      at::zeros({rows, (kernel_size - 1) * dilation + rollback, channels}, options),
      at::zeros({rows, 2}, options.dtype(at::kLong).requires_grad(false))};
}

ShortConvState short_conv_state_of(const at::Tensor& inputs, int64_t rollback) {
  SEQCONV_CHECK_OP(
      kStateOf,
      inputs.dim() == 3 && rollback >= 0,
      "inputs must be [M, (K-1) D, C] and rollback at least 0, but got {} and {}",
      inputs.sizes(),
      rollback);
  const int64_t M = inputs.size(0), L = inputs.size(1);
  at::Tensor ring = at::zeros({M, L + rollback, inputs.size(2)}, inputs.options());
  ring.slice(1, 0, L).copy_(inputs.detach());
  return {ring, at::full({M, 2}, L, inputs.options().dtype(at::kLong))};
}

at::Tensor short_conv_last_inputs(const ShortConvState& state, int64_t count) {
  return last_inputs(state.ring, state.positions, count);
}

void short_conv_rollback(
    ShortConvState& state, const at::Tensor& counts, int64_t kernel_size, int64_t dilation) {
  check_width(kShortConvRollback, kernel_size, dilation);
  check_positions(kShortConvRollback, state.ring, state.positions);
  static const auto op = find_op<decltype(rollback)>(kShortConvRollback);
  op.call(state.positions, counts, state.ring.size(1) - (kernel_size - 1) * dilation);
}

at::Tensor short_conv_step(
    const at::Tensor& x, ShortConvState& state, const ShortConvStepOptions& options) {
  return ShortConvDispatch::step(
      {.x = x,
       .weight = options.weight,
       .dynamic = options.dynamic,
       .bias = options.bias,
       .dilation = options.dilation,
       .activation = enum_name(options.activation),
       .residual = options.residual,
       .normalization = enum_name(options.normalization),
       .renormalize_edges = options.renormalize_edges,
       .state_indices = options.state_indices,
       .lengths = options.lengths},
      state.ring,
      state.positions);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  const std::string settings =
      "int dilation=1, SymInt? padding_left=None, str activation='none', bool residual=False, str "
      "normalization='none', bool renormalize_edges=False, float drop_p=0.0, Tensor? "
      "drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None, Tensor? cu_seqlens=None, "
      "Tensor? seq_idx=None) -> ";
  const std::string inputs =
      "Tensor x, Tensor? weight=None, Tensor? dynamic=None, Tensor? bias=None, Tensor? "
      "initial_state=None, *, ";
  m.def(concat(kShortConv, "(", inputs, settings, "Tensor").c_str());
  m.def(
      concat(kShortConv, "_reference(", inputs, settings, "Tensor").c_str(),
      ShortConvEntry<ShortConvByDefinition>::forward);
  m.def(concat(
            kShortConvBackward,
            "(Tensor grad, ",
            inputs,
            "bool[5] output_mask, ",
            settings,
            "(Tensor grad_x, Tensor grad_weight, Tensor grad_dynamic, Tensor grad_bias, Tensor "
            "grad_initial_state)")
            .c_str());
  m.def(concat(
            kShortConvStep,
            "(Tensor x, Tensor(a!) ring, Tensor(b!) positions, Tensor? weight=None, Tensor? "
            "dynamic=None, Tensor? bias=None, *, int dilation=1, str activation='none', bool "
            "residual=False, str normalization='none', bool renormalize_edges=False, Tensor? "
            "state_indices=None, Tensor? lengths=None) -> Tensor")
            .c_str());
  m.def(
      concat(
          kFinalState,
          "(Tensor x, int kernel_size, *, int dilation=1, Tensor? initial_state=None, Tensor? "
          "lengths=None, Tensor? cu_seqlens=None) -> Tensor")
          .c_str(),
      final_state);
  m.def(
      concat(kLastInputs, "(Tensor ring, Tensor positions, int count) -> Tensor").c_str(),
      last_inputs);
  m.def(concat(kShortConvRollback, "(Tensor(a!) positions, Tensor counts, int further) -> ()")
            .c_str());
}

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  m.impl(kShortConvRollback, rollback);
}

}  // namespace seqconv::ops
