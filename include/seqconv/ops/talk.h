#pragma once

#include "seqconv/ops/conv_options.h"

namespace seqconv::ops {

/// Arguments of talk besides its tensors.
struct TalkOptions {
  int64_t max_left = 0;                 ///< furthest reach to the left, in tokens
  int64_t max_right = 0;                ///< to the right; 0 in the causal form
  std::optional<at::Tensor> lengths{};  ///< [B], int64 or int32, right padding
};

/// Time-aware large kernel convolution (Lioutas & Guo 2020, eq. 2-8;
/// semantics.md 1.5): the sum over the window [t - left * max_left,
/// t + right * max_right], edge tokens by linear interpolation, over
/// max_left + max_right + 1.
/// x [B, T, C], offset_left and offset_right [B, T, H] in [0, 1] (more after
/// offset dropout) -> [B, T, C]. Without offset_right the window ends at t and
/// max_right must be 0. Sums are local to the window and, like positions, never
/// below float32; offsets have x's type, or float32 beside bfloat16 (better:
/// bfloat16 moves the edges). Differentiable; the gradient of an offset whose
/// edge is a whole position or clamped is zero.
at::Tensor talk(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkOptions& options);

/// The same by prefix sums in plain tensor algebra, kept for ever.
at::Tensor talk_reference(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkOptions& options);

/// State of the causal step form: the last inputs, zeros [N, L, C] with
/// L = ceil(max_left * max_offset).
at::Tensor talk_initial_state(
    int64_t rows,
    int64_t max_left,
    int64_t channels,
    const at::TensorOptions& options,
    double max_offset = 1.0);

/// Causal talk of the next T' >= 1 inputs. x [N, T', C], offset_left
/// [N, T', H] -> [N, T', C]. `state` [N, L, C] is a ring as in lightconv_step.
/// An offset above max_offset = L / max_left is an error.
at::Tensor talk_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left);

}  // namespace seqconv::ops
