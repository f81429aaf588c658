#pragma once

#include <algorithm>

#include "kernels/talk.h"
#include "kernels/talk/talk_kernels.h"

/// The inner loops of TaLK for heads of few channels, compiled for each
/// instruction set in talk_heads.cpp. A vector holds channels of several heads,
/// each lane with a window of its own.
namespace seqconv::internal::kernels {

/// Heads of few channels that are worked on together, and these.
struct TalkHeadGroup {
  int64_t first = 0;
  int64_t count = 0;
  int64_t channel = 0;
  int64_t channels = 0;
};

/// Groups of such heads.
inline int64_t talk_head_groups(const TalkShape& shape) {
  const int64_t most = kTalkTogether / shape.head_channels();
  return (shape.heads + most - 1) / most;
}
/// One of them.
inline TalkHeadGroup talk_head_group(const TalkShape& shape, int64_t group) {
  const int64_t R = shape.head_channels(), most = kTalkTogether / R;
  const int64_t first = group * most, count = std::min(most, shape.heads - first);
  return {.first = first, .count = count, .channel = first * R, .channels = count * R};
}

/// Neighbouring heads that are worked on together, at the rows of a tile.
template <class O>
struct TalkHeads {
  TalkOffsets<O> offsets;  ///< of the first one; those of the others follow
  int64_t count = 0;       ///< at most kTalkTogether / head_channels
  int64_t head_channels = 0;
  int64_t reach_left = 0;   ///< the window of row t has rows from t - reach_left
  int64_t reach_right = 1;  ///< to t + reach_right - 1
  bool prefetches = false;  ///< the offsets, and inputs, that follow
};

/// Rows of outputs of these. Windows are made of the offsets, row by row.
template <class S, class O, class A = AccumulatorOf<S>>
struct TalkHeadsTile {
  TalkTile<S, A> rows;  ///< no windows; sums: [ring, 2, kTalkTogether]
  TalkHeads<O> heads;
};

/// Rows first .. first+span-1 of the inputs of such heads, and all windows that
/// may hold some of them, whose offsets are those of `heads`. Tensors begin at
/// row 0 of the sequence.
template <class S, class O, class A = AccumulatorOf<S>>
struct TalkHeadsGradTile {
  TalkHeads<O> heads;
  int64_t first = 0;
  int64_t span = 0;
  int64_t channels = 0;
  A scale = 1;
  const S* g = nullptr;
  const S* x = nullptr;
  S* grad_x = nullptr;      ///< or null
  int64_t stride = 0;       ///< of these
  O* grad_left = nullptr;   ///< or null; rows lie as those of the offsets
  O* grad_right = nullptr;  ///< or null
  A scale_left = 1;
  A scale_right = 1;
  int64_t ring = 1;        ///< a power of two: as many rows as a window may hold
  A* changes = nullptr;    ///< [ring, 2, kTalkTogether]
  A* inputs = nullptr;     ///< [ring, kTalkTogether]
  bool streaming = false;  ///< stores to grad_x go past the caches
};

/// x and y of type S, offsets of type O.
template <class S, class O>
struct TalkHeadsKernels {
  /// Channels of a vector: heads of fewer are narrow.
  int64_t lanes = 1;
  /// As those of TalkKernels.
  bool (*forward)(const TalkHeadsTile<S, O>& tile) = nullptr;
  /// Items begin .. end-1 of all streams' groups of heads, groups fastest.
  void (*step)(const TalkStep<S, O>& args, int64_t begin, int64_t end) = nullptr;
  void (*row)(const TalkRow<S, O>& args) = nullptr;
};

template <class S, class O>
const TalkHeadsKernels<S, O>& talk_heads_kernels(Isa isa);

/// As that of TalkKernels; by itself, for programs that make no backward passes.
template <class S, class O>
using TalkHeadsBackward = bool (*)(const TalkHeadsGradTile<S, O>& tile);
template <class S, class O>
TalkHeadsBackward<S, O> talk_heads_backward(Isa isa);

}  // namespace seqconv::internal::kernels
