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
/// be seen, [N, H, t, R] each.
struct AttentionState {
  at::Tensor keys;
  at::Tensor values;
};

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
