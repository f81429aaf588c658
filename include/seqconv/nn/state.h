#pragma once

#include <ATen/core/Tensor.h>

#include <variant>

namespace seqconv {

/// The past of a convolution: the last inputs, [N, L, C], a ring over time
/// whose size does not grow (L = K-1, or TaLK's largest reach).
struct ConvState {
  at::Tensor window;
};

/// The past of self-attention: keys and values of every position that can still
/// be seen, places `begin` to `end` of buffers with room for more, so that a
/// step need not copy them.
struct AttentionState {
  at::Tensor keys;    ///< [N, H, room, R]
  at::Tensor values;  ///< [N, H, room, R]
  int64_t begin = 0;
  int64_t end = 0;

  int64_t kept() const { return end - begin; }
};

/// Puts keys and values [N, H, T', R] behind those that are kept; where the
/// room is too small it doubles.
void append(
    AttentionState& state,
    const at::Tensor& keys,
    const at::Tensor& values);

/// The keys or values in use, [N, H, kept, R]: a view of `buffer`.
at::Tensor in_use(const AttentionState& state, const at::Tensor& buffer);

/// The past of average attention: the sums of all inputs, [N, C] float64. Its
/// size does not grow either.
struct AverageState {
  at::Tensor sums;
};

/// What one layer remembers between two steps.
using MixerState = std::variant<ConvState, AttentionState, AverageState>;

/// New row r continues old row parents[r]; parents [N'] int64.
void reorder(MixerState& state, const at::Tensor& parents);

/// How many inputs a decoder has seen, on the host and as the tensor that the
/// step operators read.
struct StepPosition {
  int64_t count = 0;
  at::Tensor tensor;  ///< [1] int64
};

}  // namespace seqconv
