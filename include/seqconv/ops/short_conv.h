#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "seqconv/ops/activation.h"
#include "seqconv/ops/conv_options.h"
#include "seqconv/ops/normalization.h"

namespace seqconv::ops {

/// Taps and arguments of short_conv. Shapes are those of x [B, T, C]; packed
/// (`cu_seqlens`), x is [N, C] or [1, N, C], and so are the others.
struct ShortConvOptions {
  std::optional<at::Tensor> weight{};         ///< [G, K], taps of all positions; G divides C
  std::optional<at::Tensor> dynamic{};        ///< [B, T, H, K], of each; H divides C
  std::optional<at::Tensor> bias{};           ///< [C]
  std::optional<at::Tensor> initial_state{};  ///< [B, (K-1) D, C], inputs before, in order of time
  int64_t dilation = 1;                       ///< D
  std::optional<int64_t> padding_left{};      ///< taps before the current one; K-1: causal
  ConvActivation activation = ConvActivation::kNone;
  bool residual = false;                               ///< adds x behind the activation
  Normalization normalization = Normalization::kNone;  ///< of weight or of dynamic, not of both
  bool renormalize_edges = false;
  DropConnect drop{};                      ///< of the normalised taps; mask as these
  std::optional<at::Tensor> lengths{};     ///< [B], int64 or int32, right padding
  std::optional<at::Tensor> cu_seqlens{};  ///< [B+1], int32 or int64: 0 ... N
  /// [B, T], int32 or int64: neighbours with the same number are a sequence, and
  /// those with a negative one are padding. The initial state is that of the
  /// first sequence of each row.
  std::optional<at::Tensor> seq_idx{};
};

/// Short convolution: of static taps, of taps of every position, or of both,
///
///   y[b,t,c] = act(bias[c] + sum_j (weight[g(c),j] + dynamic[b,t,h(c),j]) *
///              x[b, t - (padding_left - j) D, c]) (+ x[b,t,c])
///
/// with g(c) = floor(c G / C), h(c) = floor(c H / C), and zero, or the initial
/// state, for inputs outside of a sequence. x [B, T, C] -> [B, T, C] of x's type.
/// The whole, its pieces of any lengths, packed sequences and steps give the same
/// bits (causal, one instruction set), as does any number of threads.
/// Differentiable in x, weight, dynamic, bias and initial_state. lightconv is the
/// softmax of `weight` alone, dynamicconv that of `dynamic`. A CUDA device has all of
/// it but renormalize_edges, and finds no values that are wrong (docs/cuda.md).
at::Tensor short_conv(const at::Tensor& x, const ShortConvOptions& options);

/// short_conv in plain tensor algebra, kept for ever as the definition.
at::Tensor short_conv_reference(const at::Tensor& x, const ShortConvOptions& options);

/// Says where sequences lie, as ShortConvOptions does.
struct ShortConvStateOptions {
  int64_t dilation = 1;
  std::optional<at::Tensor> initial_state{};
  std::optional<at::Tensor> lengths{};
  std::optional<at::Tensor> cu_seqlens{};
};

/// The last (K-1) D inputs of each sequence in order of time, [B, (K-1) D, C]:
/// those of the initial state and of x, zeros before them. Differentiable in both
/// any number of times.
at::Tensor short_conv_final_state(
    const at::Tensor& x, int64_t kernel_size, const ShortConvStateOptions& options = {});

/// The inputs that steps remember, in rings: input number p of row m is
/// ring[m, p % slots]. A ring has (K-1) D slots and one for every further input
/// that may be taken back.
struct ShortConvState {
  at::Tensor ring;       ///< [M, slots, C]
  at::Tensor positions;  ///< [M, 2], int64: inputs seen, and the most there ever were
};

/// A state before the first input of M = rows streams, whose last
/// `rollback` inputs may be taken back.
ShortConvState short_conv_initial_state(
    int64_t rows,
    int64_t kernel_size,
    int64_t channels,
    const at::TensorOptions& options = {},
    int64_t dilation = 1,
    int64_t rollback = 0);

/// A state after inputs of which the last (K-1) D are `inputs` [M, (K-1) D, C], in
/// order of time, as short_conv_final_state has them.
ShortConvState short_conv_state_of(const at::Tensor& inputs, int64_t rollback = 0);

/// The last `count` inputs [M, count, C] in order of time, a copy; zeros before the
/// first one. At most as many as the ring has slots.
at::Tensor short_conv_last_inputs(const ShortConvState& state, int64_t count);

/// Takes the last counts[m] inputs of every row m back, [M] int64 or int32. Raises
/// where the ring no longer has the (K-1) D inputs before; on a CUDA device takes as
/// many back as it can.
void short_conv_rollback(
    ShortConvState& state, const at::Tensor& counts, int64_t kernel_size, int64_t dilation = 1);

/// Taps and arguments of short_conv_step, as those of ShortConvOptions.
struct ShortConvStepOptions {
  std::optional<at::Tensor> weight{};   ///< [G, K]
  std::optional<at::Tensor> dynamic{};  ///< [N, T', H, K]
  std::optional<at::Tensor> bias{};     ///< [C]
  int64_t dilation = 1;
  ConvActivation activation = ConvActivation::kNone;
  bool residual = false;
  Normalization normalization = Normalization::kNone;
  bool renormalize_edges = false;
  /// [N], int64 or int32: the row of the state that each row of x goes on with;
  /// a negative one is padding, gives zero and changes nothing.
  std::optional<at::Tensor> state_indices{};
  std::optional<at::Tensor> lengths{};  ///< [N]: inputs of each row that are real
};

/// The causal short_conv of the next T' >= 1 inputs x [N, T', C] of some rows of a
/// state, which is changed in place and moves on. No gradient.
at::Tensor short_conv_step(
    const at::Tensor& x, ShortConvState& state, const ShortConvStepOptions& options);

}  // namespace seqconv::ops
