#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/conv_plan.h"
#include "seqconv/kernels/cuda/talk.h"

/// Windows of TaLK, and how its passes are cut into blocks.
namespace seqconv::kernels::cuda {

inline constexpr int kTalkThreads = 128;
inline constexpr int kTalkTile = 64;     ///< positions of a block
inline constexpr int kTalkSegment = 32;  ///< rows that one thread scans
inline constexpr int kTalkLanes = 8;  ///< threads of a reduction's last stage

/// The window of a position: whole rows [begin, end), and shares of the row
/// before and the row after. A border on a whole position has no share. begin
/// may exceed end (negative offsets): the rows between count negatively.
template <class A>
struct alignas(16) TalkWindow {
  int begin;
  int end;
  A left;
  A right;

  SEQCONV_HD int left_row() const { return begin - (left > 0 ? 1 : 0); }
  SEQCONV_HD int right_row() const { return end - 1 + (right > 0 ? 1 : 0); }
};

constexpr int64_t window_bytes(int sum_bytes) {
  return round_up<int64_t>(2 * sizeof(int) + 2 * sum_bytes, 16);
}
static_assert(window_bytes(4) == sizeof(TalkWindow<float>));
static_assert(window_bytes(8) == sizeof(TalkWindow<double>));

/// Rows [begin, end) that windows touch.
struct TalkSpan {
  int begin = INT32_MAX;
  int end = INT32_MIN;

  SEQCONV_HD void add(int from, int to) {
    begin = least(begin, from);
    end = most(end, to);
  }
  template <class A>
  SEQCONV_HD void add(const TalkWindow<A>& w) {
    const int left = w.left_row(), right = w.right_row();
    add(least(least(left, right), least(w.begin, w.end)),
        most(most(left, right) + 1, most(w.begin, w.end)));
  }
};

/// A distance clamped to [-back, forth] (borders beyond the sequence move to
/// its ends) as whole steps and a share in [0, 1); a NaN stays one.
template <class A>
SEQCONV_HD void
split_distance(A distance, int back, int forth, int& whole, A& share) {
  whole = 0;
  share = distance;
  if (distance != distance)
    return;
  share = A(0);
  if (distance >= static_cast<A>(forth)) {
    whole = forth;
  } else if (distance <= static_cast<A>(-back)) {
    whole = -back;
  } else {
    whole = static_cast<int>(distance);
    if (static_cast<A>(whole) > distance)
      --whole;
    share = distance - static_cast<A>(whole);
  }
}

/// The window of position t of `valid` whose borders are so far from t.
template <class A>
SEQCONV_HD TalkWindow<A> talk_window(int t, int valid, A to_left, A to_right) {
  const int ahead = valid - 1 - t;
  int left = 0, right = 0;
  TalkWindow<A> window;
  split_distance(to_left, ahead, t, left, window.left);
  split_distance(to_right, t, ahead, right, window.right);
  window.begin = t - left;
  window.end = t + right + 1;
  return window;
}

/// Where a pass keeps what. A block owns kTalkTile positions of `heads`
/// neighbouring heads, `width` channels at a time.
struct TalkPlan {
  int width = 0;
  int heads = 1;
  int groups = 1;    ///< of heads
  int capacity = 0;  ///< forward: rows whose sums fit
  int copies = 1;    ///< backward: difference arrays
  int64_t tiles = 0;
  int64_t blocks = 0;
  int64_t windows_at = 0;
  int64_t spans_at = 0;
  int64_t sums_at = 0;
  int64_t totals_at = 0;
  int64_t edges_at = 0;
  int64_t shared = 0;
};

inline TalkPlan talk_tiles(const TalkShape& shape, int64_t width) {
  const int64_t R = shape.head_channels();
  TalkPlan plan;
  // The windows of more than 32 heads would leave no room for sums.
  plan.heads = static_cast<int>(
      clamped<int64_t>(width / R, 1, least<int64_t>(shape.heads, 32)));
  plan.width =
      static_cast<int>(plan.heads > 1 ? plan.heads * R : least(width, R));
  plan.groups = static_cast<int>(pieces_of<int64_t>(shape.heads, plan.heads));
  plan.tiles = pieces_of<int64_t>(shape.steps, kTalkTile);
  plan.blocks = shape.batch * plan.tiles * plan.groups;
  return plan;
}

/// Forward: as many rows as the longest window of offsets up to 1 needs, with
/// fewer channels where windows are long; half as many again where there is
/// room, for offsets above 1. Blocks whose windows reach over more rows than
/// that add them up one by one.
inline TalkPlan plan_talk_forward(const TalkShape& shape, int sum_bytes) {
  const int64_t wanted = least<int64_t>(
      shape.steps,
      kTalkTile + shape.max_left + shape.max_right + 2 + kTalkSegment);
  TalkPlan plan;
  for (int64_t width = 64; width >= 8; width /= 2) {
    plan = talk_tiles(shape, width);
    SharedLayout layout;
    plan.windows_at =
        layout.add(plan.heads * kTalkTile, window_bytes(sum_bytes));
    plan.spans_at = layout.add(kTalkThreads + kTalkLanes, sizeof(TalkSpan));
    const int64_t row = plan.width * sum_bytes;
    // For n rows n + 1 sums, and n / kTalkSegment + 1 totals.
    const int64_t room = (kMediumShared - layout.size() - 64) / row - 2;
    const int64_t fit = room * kTalkSegment / (kTalkSegment + 1) - 1;
    plan.capacity =
        static_cast<int>(least(fit, round_up<int64_t>(wanted, kTalkSegment)));
    plan.sums_at = layout.add((plan.capacity + 1) * plan.width, sum_bytes);
    plan.totals_at =
        layout.add((plan.capacity / kTalkSegment + 1) * plan.width, sum_bytes);
    plan.shared = layout.size();
    if (wanted <= plan.capacity)
      return plan;
  }
  return plan;
}

/// Backward: difference arrays of kTalkTile + 1 rows, one for the threads that
/// take left borders and one for those that take right ones (more of both
/// where channels leave threads idle).
inline TalkPlan plan_talk_backward(const TalkShape& shape, int sum_bytes) {
  TalkPlan plan = talk_tiles(shape, sum_bytes == 4 ? 64 : 32);
  plan.copies = 2 * clamped(kTalkThreads / (2 * plan.width), 1, 4);
  SharedLayout layout;
  plan.windows_at = layout.add(plan.heads * kTalkTile, window_bytes(sum_bytes));
  plan.spans_at = layout.add(kTalkThreads + kTalkLanes, sizeof(TalkSpan));
  plan.sums_at =
      layout.add(plan.copies * (kTalkTile + 1) * plan.width, sum_bytes);
  plan.edges_at = layout.add(2 * plan.heads * kTalkTile, sum_bytes);
  plan.shared = layout.size();
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
  int all_heads = 1;
  int head_channels = 1;
  AccumulatorOf<S> max_left = 0;
  AccumulatorOf<S> max_right = 0;
  AccumulatorOf<S> scale = 1;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;
  S* out = nullptr;  ///< y, or grad_x
  void* grad_left = nullptr;
  void* grad_right = nullptr;
  int32_t* reach = nullptr;  ///< [B, tiles, H, 2]

  /// The window of position t (< valid) of head h of sequence b.
  SEQCONV_HD TalkWindow<AccumulatorOf<S>>
  window(int64_t b, int t, int h, int valid) const {
    using A = AccumulatorOf<S>;
    const int64_t i = (b * steps + t) * all_heads + h;
    const A left = load_stored<A>(offsets.left, offsets.storage, i);
    const A right = offsets.right == nullptr
        ? A(0)
        : load_stored<A>(offsets.right, offsets.storage, i);
    return talk_window<A>(t, valid, left * max_left, right * max_right);
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
    const int64_t at = block / task.plan.groups;
    b = at / task.plan.tiles;
    tile = at % task.plan.tiles;
    first = static_cast<int>(tile) * kTalkTile;
    rows = static_cast<int>(least<int64_t>(kTalkTile, task.steps - first));
    valid = static_cast<int>(valid_steps(task.lengths, b, task.steps));
    head = static_cast<int>(block % task.plan.groups) * task.plan.heads;
    heads = least(task.plan.heads, task.all_heads - head);
  }
  SEQCONV_HD int real() const { return clamped(valid - first, 0, rows); }
};

/// Channels [first, first + width) of the tensor: all of a block's heads, or
/// a piece of its only one.
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
      width = least(task.plan.width, R - begin);
    }
  }
  template <class S>
  static SEQCONV_HD int count(const TalkTask<S>& task, const TalkTile& tile) {
    return tile.heads > 1 ? 1 : pieces_of(task.head_channels, task.plan.width);
  }
};

/// Two phases: the union of every thread's span, of(thread); then for all.
template <class Block, class Of>
SEQCONV_DEVICE TalkSpan
join_spans(Block& block, TalkSpan* spans, const Of& of) {
  block.each([&](int thread) { spans[thread] = of(thread); });
  TalkSpan* const last = spans + block.threads();
  block.each([&](int thread) {
    if (thread >= kTalkLanes)
      return;
    TalkSpan span;
    for (int i = thread; i < block.threads(); i += kTalkLanes)
      span.add(spans[i].begin, spans[i].end);
    last[thread] = span;
  });
  TalkSpan all;
  for (int i = 0; i < kTalkLanes; ++i)
    all.add(last[i].begin, last[i].end);
  return all;
}

}  // namespace seqconv::kernels::cuda
