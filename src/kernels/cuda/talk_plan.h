#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/talk_window.h"
#include "seqconv/kernels/cuda/talk.h"

/// How the passes of TaLK are cut into blocks.
namespace seqconv::kernels::cuda {

inline constexpr int kTalkThreads = 128;

/// Where a pass keeps what. A block owns kTalkTile positions of `heads`
/// neighbouring heads, `width` channels at a time.
struct TalkPlan {
  int width = 0;
  int heads = 1;
  int groups = 1;   ///< of heads
  int chunks = 1;   ///< of the channels of a block's only head
  int columns = 1;  ///< threads for a row: of V channels each
  int strides = 1;  ///< rows that a block's threads take at once
  Divisor by_columns;
  int capacity = 0;  ///< forward: rows whose sums fit
  int copies = 1;    ///< backward: difference arrays
  int around = 0;    ///< backward: positions whose edges fit
  int64_t tiles = 0;
  int64_t blocks = 0;
  int64_t windows_at = 0;
  int64_t spans_at = 0;
  int64_t sums_at = 0;
  int64_t edges_at = 0;
  int64_t shared = 0;

  void set_columns(int vector) {
    columns = width / vector;
    strides = kTalkThreads / columns;
    by_columns = Divisor(columns);
  }
};

inline TalkPlan talk_tiles(const TalkShape& shape, int64_t width) {
  const int64_t R = shape.head_channels();
  TalkPlan plan;
  // The windows of more than 32 heads would leave no room for sums.
  plan.heads = static_cast<int>(
      clamped<int64_t>(width / R, 1, min<int64_t>(shape.heads, 32)));
  plan.width =
      static_cast<int>(plan.heads > 1 ? plan.heads * R : min(width, R));
  plan.groups = static_cast<int>(chunks_of<int64_t>(shape.heads, plan.heads));
  plan.chunks =
      plan.heads > 1 ? 1 : static_cast<int>(chunks_of<int64_t>(R, plan.width));
  plan.tiles = chunks_of<int64_t>(shape.steps, kTalkTile);
  plan.blocks = shape.batch * plan.tiles * plan.groups;
  return plan;
}

/// What a block of the forward pass may have: four of them to a multiprocessor
/// of compute capability 9.0.
inline constexpr int64_t kTalkShared = 56 * 1024;

/// Forward: sums of as many rows as windows reach over, with fewer channels
/// where those are many; of offsets up to 1.125, and up to 1.5 where there is
/// room, since offset dropout makes offsets of more than 1. Blocks whose
/// windows reach over more rows than that add them up one by one.
inline TalkPlan plan_talk_forward(const TalkShape& shape, int sum_bytes) {
  // Of the rows that a tile's windows touch, from a segment's first one on.
  const auto segments = [&](int64_t left, int64_t right) {
    const int64_t rows =
        round_up<int64_t>(left, kTalkSegment) + kTalkTile + right;
    return min(rows, shape.steps) / kTalkSegment + 1;
  };
  const int64_t left = shape.max_left, right = shape.max_right;
  const int64_t wanted = segments(
      left + chunks_of<int64_t>(left, 8),
      right + chunks_of<int64_t>(right, 8));
  const int64_t roomy = segments(left + left / 2, right + right / 2);
  TalkPlan plan;
  const auto fits = [&](int64_t width, int64_t limit) {
    plan = talk_tiles(shape, width);
    SharedLayout layout;
    plan.windows_at =
        layout.add(plan.heads * kTalkTile, window_bytes(sum_bytes));
    plan.spans_at = layout.add(kTalkThreads / kWarp, sizeof(TalkSpan));
    plan.sums_at = layout.size();
    const int64_t segment = (kTalkSegment + 1) * plan.width * sum_bytes;
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
    if (fits(width, kMediumShared))
      return plan;
  return plan;
}

/// Rows of a difference array: of a tile, one before it and two behind.
inline constexpr int kTalkSteps = kTalkTile + 3;

/// Backward: difference arrays for two or more threads of every column.
inline TalkPlan plan_talk_backward(const TalkShape& shape, int sum_bytes) {
  TalkPlan plan;
  // Half of it for the windows and products of many narrow heads of float64.
  for (int64_t width = 256 / sum_bytes; width >= 8; width /= 2) {
    plan = talk_tiles(shape, width);
    plan.copies = 2 * clamped(256 / (plan.width * sum_bytes), 1, 4);
    SharedLayout layout;
    // Those of most tiles at once, unless heads are narrow and many.
    plan.around = plan.heads <= 4 ? 2 * kTalkTile : kTalkTile;
    plan.windows_at =
        layout.add(plan.heads * plan.around, window_bytes(sum_bytes));
    plan.spans_at = layout.add(kTalkThreads / kWarp, sizeof(TalkSpan));
    plan.sums_at = layout.add(plan.copies * kTalkSteps * plan.width, sum_bytes);
    plan.edges_at = layout.add(2 * plan.heads * kTalkTile, sum_bytes);
    plan.shared = layout.size();
    if (plan.shared <= kMediumShared)
      break;
  }
  return plan;
}

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
  AccumulatorOf<S> max_left = 0;
  AccumulatorOf<S> max_right = 0;
  AccumulatorOf<S> scale = 1;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;
  S* out = nullptr;  ///< y, or grad_x, null if not wanted
  void* grad_left = nullptr;
  void* grad_right = nullptr;
  int32_t* reach = nullptr;  ///< [B, tiles, H, 2]

  SEQCONV_HD bool wants_offsets() const {
    return grad_left != nullptr || grad_right != nullptr;
  }

  /// f(left, right) with pointers of the offsets' own type.
  template <class F>
  SEQCONV_DEVICE void with_offsets(const F& f) const {
    with_storage<S>(offsets.storage, [&](auto type) {
      using O = decltype(type);
      f(static_cast<const O*>(offsets.left),
        static_cast<const O*>(offsets.right));
    });
  }
};

/// Windows of positions [first, first + count) and heads [head, head + heads).
struct TalkRange {
  int64_t b;
  int valid;  ///< real positions of the sequence
  int first;
  int count;
  int head;
  int heads;  ///< at most a warp's lanes
};

/// Part of a phase: f(h, r, window) for a thread's share of a range's windows,
/// r counted from its first position; all of a thread's are of one head.
template <int kAtOnce, class S, class F>
SEQCONV_DEVICE void each_window(
    const TalkTask<S>& task,
    const TalkRange& range,
    int thread,
    int threads,
    const F& f) {
  using A = AccumulatorOf<S>;
  int lanes = threads, h = 0, lane = thread;
  if (range.heads > 1) {  // or three divisions for nothing
    lanes = threads / range.heads;
    h = thread % range.heads;
    lane = thread / range.heads;
  }
  if (lane >= lanes)
    return;
  const int64_t base =
      (range.b * task.steps + range.first) * task.all_heads + range.head + h;
  task.with_offsets([&]<class O>(const O* left, const O* right) {
    SEQCONV_NO_UNROLL
    for (int r0 = lane; r0 < range.count; r0 += kAtOnce * lanes) {
      O to_left[kAtOnce], to_right[kAtOnce] = {};
      SEQCONV_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = min(r0 + i * lanes, range.count - 1);
        to_left[i] = left[base + int64_t{r} * task.all_heads];
        if (right != nullptr)
          to_right[i] = right[base + int64_t{r} * task.all_heads];
      }
      SEQCONV_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = r0 + i * lanes;
        if (r < range.count)
          f(h,
            r,
            talk_window<A>(
                range.first + r,
                range.valid,
                widen(to_left[i]) * task.max_left,
                widen(to_right[i]) * task.max_right));
      }
    }
  });
}

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
  SEQCONV_HD TalkRange own_positions() const {
    return {b, valid, first, real(), head, heads};
  }
};

/// A block's shared memory.
template <class S>
struct TalkMemory {
  using A = AccumulatorOf<S>;
  TalkWindow<A>* windows;  ///< [positions, heads]
  TalkSpan* spans;
  A* sums;

  SEQCONV_DEVICE TalkMemory(const TalkTask<S>& task, char* shared)
      : windows(shared_at<TalkWindow<A>>(shared, task.plan.windows_at)),
        spans(shared_at<TalkSpan>(shared, task.plan.spans_at)),
        sums(shared_at<A>(shared, task.plan.sums_at)) {}
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
/// the channels from `channel` on, in rows (or segments) `row`, row + stride,
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
};

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
    const TalkSpan joined = {lanes_min(warp, begin), lanes_max(warp, end)};
    warp.each([&](int lane) {
      if (lane == 0)
        spans[warp.index()] = joined;
    });
  });
  TalkSpan all;
  SEQCONV_UNROLL
  for (int i = 0; i < kTalkThreads / kWarp; ++i)
    all.add(spans[i].begin, spans[i].end);
  return all;
}

}  // namespace seqconv::kernels::cuda
