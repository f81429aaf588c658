#pragma once

#include "kernels/cuda/talk/plan.h"

/// What a block of TaLK works on, and who takes which part of it.
namespace seqconv::kernels::cuda {

/// What the kernels of TaLK are given.
template <class S>
struct TalkTask {
  TalkPlan plan;
  TalkOffsets offsets;
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  int row_bytes = 0;
  int all_heads = 1;
  int head_channels = 1;
  float max_left = 0;
  float max_right = 0;
  float scale = 1;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;
  S* out = nullptr;  ///< y, or grad_x, null if not wanted
  void* grad_left = nullptr;
  void* grad_right = nullptr;
  TalkSpan* reach = nullptr;  ///< [B, tiles]

  SEQCONV_HD bool wants_offsets() const {
    return grad_left != nullptr || grad_right != nullptr;
  }
};

/// The tile of a block.
struct TalkTile {
  int64_t b;
  int64_t tile;
  int first;
  int rows;   ///< of the tile that are in the tensor
  int valid;  ///< real positions of the sequence
  int head;
  int heads;

  template <class S>
  SEQCONV_HD TalkTile(const TalkTask<S>& task, int64_t block) {
    // Blocks are fewer than 2^31, and 32-bit divisions far cheaper.
    const auto n = static_cast<uint32_t>(block);
    const auto groups = static_cast<uint32_t>(task.plan.groups);
    const auto tiles = static_cast<uint32_t>(task.plan.tiles);
    b = n / groups / tiles;
    tile = n / groups % tiles;
    first = static_cast<int>(tile) * kTalkTile;
    rows = static_cast<int>(min<int64_t>(kTalkTile, task.steps - first));
    valid = static_cast<int>(valid_steps(task.lengths, b, task.steps));
    head = static_cast<int>(n % groups) * task.plan.heads;
    heads = min(task.plan.heads, task.all_heads - head);
  }
  SEQCONV_HD int real() const { return clamped(valid - first, 0, rows); }
};

/// Part of a phase: f(n, r, window) for a thread's share of the windows of
/// positions [first, first + count) and a tile's heads: number n = r * heads +
/// head.
template <class S, class F>
SEQCONV_DEVICE void each_window(
    const TalkTask<S>& task,
    const TalkTile& tile,
    int first,
    int count,
    int thread,
    const F& f) {
  const Divisor by_heads(tile.heads);
  const int64_t base =
      (tile.b * task.steps + first) * task.all_heads + tile.head;
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
SEQCONV_DEVICE TalkSpan
join_spans(Block& block, TalkSpan* spans, const Of& of) {
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

/// Channels [first, first + width) of the tensor: all of a block's heads, or
/// a chunk of its only one.
struct TalkChunk {
  int64_t first;
  int width;

  template <class S>
  SEQCONV_HD TalkChunk(const TalkTask<S>& task, const TalkTile& tile, int i) {
    const int R = task.head_channels;
    const int begin = i * task.plan.width;
    first = static_cast<int64_t>(tile.head) * R;
    width = tile.heads * R;
    if (tile.heads == 1) {
      first += begin;
      width = min(task.plan.width, R - begin);
    }
  }
};

/// A thread's place among those that take V channels of a chunk each: it has
/// the channels from channel() on, in rows (or segments) `row`, row + stride,
/// ...; none where `row` is `stride` or the chunk has no such channels.
template <int V>
struct TalkPlace {
  int column;
  int row;
  int stride;

  SEQCONV_DEVICE TalkPlace(const TalkPlan& plan, int thread)
      : row(plan.by_columns.quotient(thread)), stride(plan.strides) {
    column = thread - row * plan.columns;
  }
  SEQCONV_DEVICE int channel() const { return column * V; }
  SEQCONV_DEVICE bool is_idle(const TalkChunk& chunk) const {
    return row >= stride || channel() >= chunk.width;
  }
  /// Its head within the tile.
  template <class S>
  SEQCONV_DEVICE int head(const TalkTask<S>& task, const TalkTile& tile) const {
    return tile.heads > 1 ? channel() / task.head_channels : 0;
  }
};

}  // namespace seqconv::kernels::cuda
