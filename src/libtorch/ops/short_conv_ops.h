#pragma once

#include "libtorch/ops/conv_checks.h"
#include "libtorch/ops/dispatch.h"
#include "seqconv/ops/short_conv.h"

/// The dispatcher's entries of short_conv and its step.
namespace seqconv::ops {

/// A view of what short_conv is called with.
struct ShortConvArguments {
  const char* op = nullptr;  ///< its name in messages
  const at::Tensor& x;       ///< [B, T, C]; packed [N, C] or [1, N, C]
  const OptionalTensor& weight = kNoTensor;
  const OptionalTensor& dynamic = kNoTensor;
  const OptionalTensor& bias = kNoTensor;
  const OptionalTensor& initial_state = kNoTensor;
  int64_t dilation = 1;
  std::optional<c10::SymInt> padding_left = std::nullopt;  ///< none: K-1
  std::string_view activation = "none";
  bool residual = false;
  std::string_view normalization = "none";
  bool renormalize_edges = false;
  DropConnect drop = {};
  const OptionalTensor& lengths = kNoTensor;
  const OptionalTensor& cu_seqlens = kNoTensor;
  const OptionalTensor& seq_idx = kNoTensor;

  /// The taps that are normalised and dropped: those of positions if there are
  /// such, and else the static ones.
  const at::Tensor& logits() const { return dynamic ? *dynamic : *weight; }
  /// The static taps that are added to these, or none.
  const OptionalTensor& added() const { return dynamic ? weight : kNoTensor; }
  c10::SymInt kernel_size() const { return logits().sym_size(-1); }
  c10::SymInt left() const { return padding_left ? *padding_left : kernel_size() - 1; }
};

/// Selects the gradients of x, weight, dynamic, bias and the initial state.
using ShortConvMask = std::array<bool, 5>;
using ShortConvGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// A view of what short_conv_step is called with besides its state.
struct ShortConvStepArguments {
  const at::Tensor& x;  ///< [N, T', C]
  const OptionalTensor& weight = kNoTensor;
  const OptionalTensor& dynamic = kNoTensor;
  const OptionalTensor& bias = kNoTensor;
  int64_t dilation = 1;
  std::string_view activation = "none";
  bool residual = false;
  std::string_view normalization = "none";
  bool renormalize_edges = false;
  const OptionalTensor& state_indices = kNoTensor;
  const OptionalTensor& lengths = kNoTensor;

  /// These as arguments of a whole without a state.
  ShortConvArguments whole(const char* op) const {
    return {
        .op = op,
        .x = x,
        .weight = weight,
        .dynamic = dynamic,
        .bias = bias,
        .dilation = dilation,
        .activation = activation,
        .residual = residual,
        .normalization = normalization,
        .renormalize_edges = renormalize_edges,
        .lengths = lengths};
  }
};

/// The options of the function as arguments; x and they outlive them.
ShortConvArguments arguments_of(const at::Tensor& x, const ShortConvOptions& options);

/// These arguments, with other tensors to be differentiated, as options of the functions.
ShortConvOptions options_of(
    const ShortConvArguments& args,
    const OptionalTensor& weight,
    const OptionalTensor& dynamic,
    const OptionalTensor& bias,
    const OptionalTensor& initial_state);

/// Everything that can be said without reading values.
void check(const ShortConvArguments& args);
void check_short_conv_step(
    const ShortConvStepArguments& args, const at::Tensor& ring, const at::Tensor& positions);
/// Refuses what kernels of a CUDA device do not have; args: checked.
void check_on_cuda(const ShortConvArguments& args);
/// Positions are int64 [M, 2] beside a ring [M, slots, C].
void check_positions(const char* op, const at::Tensor& ring, const at::Tensor& positions);

/// Counts of inputs to take back are int64 or int32 [M] beside positions [M, 2].
void check_counts(const char* op, const at::Tensor& positions, const at::Tensor& counts);

/// The activation called so; an error that lists the names otherwise.
ConvActivation parse_activation(const char* op, std::string_view activation);

/// Names of the operators.
inline constexpr const char* kShortConv = "short_conv";
inline constexpr const char* kShortConvBackward = "short_conv_backward";
inline constexpr const char* kShortConvStep = "short_conv_step";
inline constexpr const char* kShortConvRollback = "short_conv_rollback";

/// Functions that the dispatcher calls: Impl has forward, backward and step, or
/// those of them that it serves.
template <class Impl>
struct ShortConvEntry {
  static at::Tensor forward(
      const at::Tensor& x,
      const OptionalTensor& weight,
      const OptionalTensor& dynamic,
      const OptionalTensor& bias,
      const OptionalTensor& initial_state,
      int64_t dilation,
      std::optional<c10::SymInt> padding_left,
      std::string_view activation,
      bool residual,
      std::string_view normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths,
      const OptionalTensor& cu_seqlens,
      const OptionalTensor& seq_idx) {
    return Impl::forward(
        {kShortConv,
         x,
         weight,
         dynamic,
         bias,
         initial_state,
         dilation,
         std::move(padding_left),
         activation,
         residual,
         normalization,
         renormalize_edges,
         {drop_p, drop_seed, drop_mask},
         lengths,
         cu_seqlens,
         seq_idx});
  }

  static ShortConvGradients backward(
      const at::Tensor& grad,
      const at::Tensor& x,
      const OptionalTensor& weight,
      const OptionalTensor& dynamic,
      const OptionalTensor& bias,
      const OptionalTensor& initial_state,
      ShortConvMask wanted,
      int64_t dilation,
      std::optional<c10::SymInt> padding_left,
      std::string_view activation,
      bool residual,
      std::string_view normalization,
      bool renormalize_edges,
      double drop_p,
      const OptionalTensor& drop_seed,
      const OptionalTensor& drop_mask,
      const OptionalTensor& lengths,
      const OptionalTensor& cu_seqlens,
      const OptionalTensor& seq_idx) {
    return Impl::backward(
        {kShortConvBackward,
         x,
         weight,
         dynamic,
         bias,
         initial_state,
         dilation,
         std::move(padding_left),
         activation,
         residual,
         normalization,
         renormalize_edges,
         {drop_p, drop_seed, drop_mask},
         lengths,
         cu_seqlens,
         seq_idx},
        grad,
        wanted);
  }

  static at::Tensor step(
      const at::Tensor& x,
      at::Tensor& ring,
      at::Tensor& positions,
      const OptionalTensor& weight,
      const OptionalTensor& dynamic,
      const OptionalTensor& bias,
      int64_t dilation,
      std::string_view activation,
      bool residual,
      std::string_view normalization,
      bool renormalize_edges,
      const OptionalTensor& state_indices,
      const OptionalTensor& lengths) {
    return Impl::step(
        {x,
         weight,
         dynamic,
         bias,
         dilation,
         activation,
         residual,
         normalization,
         renormalize_edges,
         state_indices,
         lengths},
        ring,
        positions);
  }
};

/// Calls the dispatcher.
struct ShortConvDispatch {
  static at::Tensor forward(const ShortConvArguments& args);
  static ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted);
  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions);
};

struct ShortConvKind {
  static constexpr const char* kForward = kShortConv;
  static constexpr const char* kBackward = kShortConvBackward;
  static constexpr const char* kStep = kShortConvStep;
  template <class Impl>
  using Entry = ShortConvEntry<Impl>;
};

/// Room for gradients, [0] each where it is not wanted or there is no input.
ShortConvGradients empty_gradients(const ShortConvArguments& args, const ShortConvMask& wanted);

}  // namespace seqconv::ops
