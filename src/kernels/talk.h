#pragma once

#include "kernels/conv.h"

namespace seqconv::internal::kernels {

/// Sizes of a time-aware large kernel convolution over x [B, T, C].
struct TalkShape {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;  ///< C, a multiple of H
  int64_t heads = 1;
  int64_t max_left = 0;
  int64_t max_right = 0;

  int64_t head_channels() const { return channels / heads; }
  int64_t window() const { return max_left + max_right + 1; }
};

/// Adaptive window sums. S stores x and y, O the offsets (S, or float where S
/// is BFloat16). Distances from t to an edge are computed in
/// AccumulatorOf<O>, never as absolute positions, so that they keep their
/// precision on long sequences.
template <class S, class O>
struct TalkForward {
  TalkShape shape;
  const S* x = nullptr;              ///< [B, T, C]
  const O* offset_left = nullptr;    ///< [B, T, H]
  const O* offset_right = nullptr;   ///< [B, T, H], or null: window ends at t
  const int64_t* lengths = nullptr;  ///< [B] or null
  S* y = nullptr;                    ///< [B, T, C]
};

/// Windows are differences of prefix sums that start anew in every tile: the
/// error depends on the window, not on T.
template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run);

/// A gradient that is null is not wanted; one of them is.
template <class S, class O>
struct TalkBackward {
  TalkShape shape;
  const S* x = nullptr;
  const O* offset_left = nullptr;
  const O* offset_right = nullptr;
  const int64_t* lengths = nullptr;
  const S* grad_y = nullptr;       ///< [B, T, C]
  S* grad_x = nullptr;             ///< [B, T, C] or null
  O* grad_offset_left = nullptr;   ///< [B, T, H] or null
  O* grad_offset_right = nullptr;  ///< [B, T, H], or null as with offset_right
};

/// Without atomics: every position of grad_x is owned by one tile, which looks
/// at all windows that reach into it.
template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run);

/// The next T' = shape.steps inputs of N = shape.batch causal streams. No
/// offset may reach further left than the ring has slots.
template <class S, class O>
struct TalkStep {
  TalkShape shape;
  const S* x = nullptr;            ///< [N, T', C]
  const O* offset_left = nullptr;  ///< [N, T', H]
  RingState<S> state;
  S* y = nullptr;  ///< [N, T', C]
};

template <class S, class O>
void talk_step(const TalkStep<S, O>& args, const Execution& run);

/// One position of one stream, whose last `count` inputs, its own among them,
/// lie anywhere in memory, oldest first. Heads have few channels: `shape` is of
/// one step, max_right 0.
template <class S, class O>
struct TalkRow {
  TalkShape shape;
  const S* const* rows = nullptr;  ///< [count], each [C]
  int64_t count = 0;               ///< at least 1, at most max_left + 1
  const O* offset_left = nullptr;  ///< [H]
  S* y = nullptr;                  ///< [C]
};

/// True if heads of so many channels have such rows on `isa`.
bool has_talk_row(int64_t head_channels, Isa isa = best_isa());

/// Has the bits of talk_step().
void talk_row(const TalkRow<float, float>& args, Isa isa = best_isa());

}  // namespace seqconv::internal::kernels
