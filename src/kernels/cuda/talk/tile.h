#pragma once

#include "kernels/cuda/talk/plan.h"

/// What a block of TaLK works on, and who takes which part of it.
namespace seqconv::internal::kernels::cuda {

/// What the kernels of TaLK are given.
template <class S>
struct TalkTask : TileTask<S> {
  TalkPlan plan;
  TalkOffsets offsets;
  int row_bytes = 0;
  float max_left = 0;
  float max_right = 0;
  float scale = 1;
  void* grad_left = nullptr;
  void* grad_right = nullptr;
  TalkSpan* reach = nullptr;  ///< [B, tiles]

  SEQCONV_HD bool wants_offsets() const { return grad_left != nullptr || grad_right != nullptr; }
};

using TalkTile = Tile<int>;

/// The tile of a block. Blocks are fewer than 2^31, and 32-bit divisions far
/// cheaper.
template <class S>
SEQCONV_DEVICE TalkTile tile_of(const TalkTask<S>& task, int64_t block) {
  const auto n = static_cast<uint32_t>(block);
  const auto groups = static_cast<uint32_t>(task.plan.groups);
  return {task, n / groups, static_cast<int>(n % groups) * task.plan.heads};
}

/// Part of a phase: f(n, r, window) for a thread's share of the windows of
/// positions [first, first + count) and a tile's heads: number n = r * heads +
/// head.
template <class S, class F>
SEQCONV_DEVICE void each_window(
    const TalkTask<S>& task, const TalkTile& tile, int first, int count, int thread, const F& f) {
  const Divisor by_heads(tile.heads);
  const int64_t base = (tile.b * task.steps + first) * task.all_heads + tile.head;
  with_storage<S>(task.offsets.storage, [&](auto type) {
    using O = decltype(type);
    const auto* const left = static_cast<const O*>(task.offsets.left);
    const auto* const right = static_cast<const O*>(task.offsets.right);
    for (int n = thread; n < count * tile.heads; n += kThreads) {
      const int r = by_heads.quotient(n), h = n - r * tile.heads;
      const int64_t i = base + offset_of(r, task.all_heads) + h;
      f(n,
        r,
        talk_window(
            first + r,
            tile.valid,
            widen(left[i]) * task.max_left,
            right != nullptr ? widen(right[i]) * task.max_right : 0.0f));
    }
  });
}

/// One phase: the union of every thread's span, of(thread); then for all.
template <class Block, class Of>
SEQCONV_DEVICE TalkSpan join_spans(Block& block, TalkSpan* spans, const Of& of) {
  block.warps([&](auto& warp) {
    Lanes<int> begin, end;
    warp.each([&](int lane) {
      const TalkSpan mine = of(warp.index() * kWarp + lane);
      begin[lane] = mine.begin;
      end[lane] = mine.end;
    });
    join_lanes<5>(warp, begin, 5, [](int a, int b) { return min(a, b); });
    join_lanes<5>(warp, end, 5, [](int a, int b) { return max(a, b); });
    warp.each([&](int lane) {
      if (lane == 0)
        spans[warp.index()] = {begin[lane], end[lane]};
    });
  });
  TalkSpan all;
  unroll<kWarps>([&](int i) { all.add(spans[i].begin, spans[i].end); });
  return all;
}

/// A block's shared memory.
struct TalkMemory {
  TalkWindow* windows;  ///< [positions, heads]
  TalkSpan* spans;
  float* sums;
  float* edges;  ///< backward: [tile, heads, 2]

  SEQCONV_DEVICE TalkMemory(const TalkPlan& plan, char* shared)
      : windows(shared_at<TalkWindow>(shared, plan.windows_at)),
        spans(shared_at<TalkSpan>(shared, plan.spans_at)),
        sums(shared_at<float>(shared, plan.sums_at)),
        edges(shared_at<float>(shared, plan.edges_at)) {}
};

/// The head of a channel of a chunk, within the tile.
template <class S>
SEQCONV_DEVICE int head_of(const TalkTask<S>& task, const TalkTile& tile, int channel) {
  return tile.heads > 1 ? channel / task.head_channels : 0;
}

}  // namespace seqconv::internal::kernels::cuda
