#pragma once

#include "kernels/cuda/common/tiles.h"
#include "kernels/cuda/talk.h"
#include "kernels/cuda/talk/window.h"

/// How the passes of TaLK are cut into blocks.
namespace seqconv::internal::kernels::cuda {

inline constexpr int kTalkTile = 64;     ///< positions of a block
inline constexpr int kTalkSegment = 16;  ///< rows that one thread scans
/// Rows of a difference array: of a tile, one before it and two behind.
inline constexpr int kTalkSteps = kTalkTile + 3;
/// Difference arrays of a block: a power of two, so that those of positions do
/// not depend on where a block begins to look.
inline constexpr int kMaxCopies = 8;
/// Heads of a block: the windows of more would leave no room for sums.
inline constexpr int kTalkHeads = 32;
/// What a block of the forward pass may have: four of them to a multiprocessor
/// of compute capability 9.0.
inline constexpr int64_t kTalkShared = 56 * 1024;

/// Where a pass keeps what.
struct TalkPlan : TilePlan {
  int edge_bits = 0;  ///< 2^so many lanes share a product of rows of a head
  int capacity = 0;   ///< forward: rows whose sums fit
  int copies = 1;     ///< backward: difference arrays
  int around = 0;     ///< backward: positions whose edges fit
  int64_t windows_at = 0;
  int64_t spans_at = 0;
  int64_t sums_at = 0;
  int64_t edges_at = 0;
  int64_t shared = 0;

  void set_vector(int channels) {
    set_columns(width / channels);
    edge_bits = bits_for(columns / heads, 3);
  }
};

inline TalkPlan talk_tiles(const TalkShape& shape, int64_t width, int64_t most_heads) {
  TalkPlan plan;
  plan.set_tiles(shape, kTalkTile, width, most_heads);
  plan.blocks = shape.batch * plan.tiles * plan.groups;
  return plan;
}

/// Forward: sums of as many rows as windows reach over, with fewer channels
/// where those are many; of offsets up to 1.125, and up to 1.5 where there is
/// room, since offset dropout makes offsets of more than 1. Blocks whose
/// windows reach over more rows than that add them up one by one.
inline TalkPlan plan_talk_forward(const TalkShape& shape, int64_t most_shared = kMediumShared) {
  // Of the rows that a tile's windows touch, from a segment's first one on.
  const auto segments = [&](int64_t left, int64_t right) {
    const int64_t rows = round_up<int64_t>(left, kTalkSegment) + kTalkTile + right;
    return min(rows, shape.steps) / kTalkSegment + 1;
  };
  const int64_t left = shape.max_left, right = shape.max_right;
  const int64_t wanted =
      segments(left + chunks_of<int64_t>(left, 8), right + chunks_of<int64_t>(right, 8));
  const int64_t roomy = segments(left + left / 2, right + right / 2);
  TalkPlan plan;
  const auto fits = [&](int64_t width, int64_t limit) {
    plan = talk_tiles(shape, width, kTalkHeads);
    SharedLayout layout;
    plan.windows_at = layout.add(plan.heads * kTalkTile, sizeof(TalkWindow));
    plan.spans_at = layout.add(kWarps, sizeof(TalkSpan));
    plan.sums_at = layout.size();
    const int64_t segment = (kTalkSegment + 1) * plan.width * static_cast<int64_t>(sizeof(float));
    // 16 bytes: what rounding adds.
    const int64_t count = min((limit - 16 - layout.size()) / segment, roomy);
    // A segment may begin with the row after the last.
    plan.capacity = static_cast<int>(count * kTalkSegment - 1);
    layout.add(count, segment);
    plan.shared = layout.size();
    return count >= wanted;
  };
  for (const int64_t width : {64, 32, 16})
    if (fits(width, kTalkShared))
      return plan;
  for (const int64_t width : {32, 16, 8})
    if (fits(width, min(most_shared, kMediumShared)))
      return plan;
  return plan;
}

inline TalkPlan talk_backward_plan(const TalkShape& shape, int64_t most_heads) {
  TalkPlan plan = talk_tiles(shape, 64, most_heads);
  plan.copies = plan.width > 32 ? 2 : plan.width > 16 ? 4 : kMaxCopies;
  // Edges of most tiles at once, unless heads are narrow and many.
  plan.around = plan.heads <= 4 ? 2 * kTalkTile : kTalkTile;
  SharedLayout layout;
  plan.windows_at = layout.add(plan.heads * plan.around, sizeof(TalkWindow));
  plan.spans_at = layout.add(kWarps, sizeof(TalkSpan));
  plan.sums_at = layout.add(plan.copies * kTalkSteps * plan.width, sizeof(float));
  plan.edges_at = layout.add(2 * plan.heads * kTalkTile, sizeof(float));
  plan.shared = layout.size();
  return plan;
}

/// Backward: difference arrays for two or more threads of every column. Fewer
/// heads of narrow ones where a block may have no more than 64 KB.
inline TalkPlan plan_talk_backward(const TalkShape& shape, int64_t most_shared = kMediumShared) {
  int64_t heads = kTalkHeads;
  TalkPlan plan = talk_backward_plan(shape, heads);
  while (plan.shared > most_shared && heads > 1)
    plan = talk_backward_plan(shape, heads /= 2);
  return plan;
}

}  // namespace seqconv::internal::kernels::cuda
