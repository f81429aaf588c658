#pragma once

#include "kernels/cuda/conv_rows.h"

/// How a convolution is cut into blocks, and where a block keeps what in its
/// shared memory. Depends on sizes alone, and where kernels are so long that
/// they need it on what a block may have: the same sums in the same order.
namespace seqconv::kernels::cuda {

inline constexpr int kConvThreads = 128;
/// What a block may have without asking on any device, the most that every one
/// gives (compute capability 8.6, 8.9 and 12.0), and that 8.0 gives.
inline constexpr int64_t kSmallShared = 48 * 1024;
inline constexpr int64_t kMediumShared = 99 * 1024;
inline constexpr int64_t kMaxShared = 163 * 1024;
/// Blocks that fill any device: with more tiles, a block takes several, for
/// which it makes shared taps once.
inline constexpr int64_t kManyBlocks = 2048;

enum class ConvPass { kForward, kBackward };

/// A block owns `rows` positions (of `tiles_per_block` tiles in turn) of
/// `heads` neighbouring heads; of a head with more than `width` channels it
/// takes `width` at a time.
struct ConvPlan {
  int rows = 0;
  int width = 0;
  int heads = 1;
  int groups = 1;   ///< of heads: H / heads, rounded up
  int in_rows = 0;  ///< rows + K - 1, or as many as tensor cores read
  int pitch = 0;    ///< elements from one staged row to the next
  int columns = 0;  ///< packs that threads stage of a row
  Divisor by_columns;
  int tap_pitch = 0;   ///< elements from one row of taps to the next
  int grad_pitch = 0;  ///< likewise of their gradients
  int logit_rows = 0;  ///< rows of logits that fit where x is staged later
  int splits = 1;      ///< threads that share a tap gradient
  int vector = 1;      ///< channels that a thread of FMA takes at once
  int tiles_per_block = 1;
  bool uses_bands = false;  ///< tensor cores (conv_band.h)
  int64_t tiles = 0;        ///< of a sequence
  int64_t units = 0;        ///< blocks of one group of heads
  int64_t blocks = 0;
  int64_t taps_at = 0;  ///< offsets in shared memory, bytes
  int64_t stats_at = 0;
  int64_t grads_at = 0;
  int64_t x_at = 0;
  int64_t y_at = 0;
  int64_t shared = 0;
};

/// Hands out aligned chunks of shared memory.
class SharedLayout {
 public:
  int64_t add(int64_t elements, int64_t bytes) {
    const int64_t at = size_;
    size_ += round_up<int64_t>(elements * bytes, 16);
    return at;
  }
  int64_t size() const { return size_; }

 private:
  int64_t size_ = 0;
};

/// What a plan is made for.
struct ConvPlanRequest {
  ConvShape shape;
  ConvPass pass = ConvPass::kForward;
  bool per_row = false;  ///< logits for every position
  int vector = 1;        ///< channels that a thread takes at once
  int storage_bytes = 4;
  int sum_bytes = 4;
  int64_t limit = kMaxShared;  ///< what a block may have on this device
};

/// Adds the staged rows of x, and of grad_y: at least a row of logits, since
/// those pass through the same memory before and after.
inline void add_staged_rows(
    SharedLayout& layout,
    ConvPlan& plan,
    const ConvPlanRequest& request) {
  const int64_t logit_bytes = request.sum_bytes *
      logit_pitch(static_cast<int>(request.shape.kernel_size));
  const int64_t staged =
      static_cast<int64_t>(plan.in_rows) * plan.pitch * request.storage_bytes;
  plan.by_columns = Divisor(plan.columns);
  plan.x_at = layout.add(max(staged, logit_bytes), 1);
  if (request.pass == ConvPass::kBackward)
    plan.y_at = layout.add(staged, 1);
  plan.logit_rows = static_cast<int>((layout.size() - plan.x_at) / logit_bytes);
}

/// Sets what follows from rows, width and heads. Logits `per_row` never share
/// a block between tiles.
inline void count_blocks(ConvPlan& plan, const ConvShape& shape, bool per_row) {
  plan.groups = static_cast<int>(chunks_of<int64_t>(shape.heads, plan.heads));
  plan.tiles = chunks_of<int64_t>(shape.steps, plan.rows);
  const int64_t all = shape.batch * plan.tiles;
  plan.tiles_per_block = per_row
      ? 1
      : static_cast<int>(
            clamped<int64_t>(all * plan.groups / kManyBlocks, 1, 16));
  plan.units = chunks_of<int64_t>(all, plan.tiles_per_block);
  plan.blocks = plan.units * plan.groups;
}

/// The plan of the FMA kernels with `rows` and `width`.
inline ConvPlan
fma_plan(const ConvPlanRequest& request, int rows, int64_t width) {
  const ConvShape& shape = request.shape;
  const int64_t R = shape.head_channels(), K = shape.kernel_size;
  const bool backward = request.pass == ConvPass::kBackward;
  ConvPlan plan;
  plan.rows = rows;
  plan.heads = static_cast<int>(clamped<int64_t>(width / R, 1, shape.heads));
  plan.width =
      static_cast<int>(plan.heads > 1 ? plan.heads * R : min(width, R));
  count_blocks(plan, shape, request.per_row);
  plan.in_rows = static_cast<int>(rows + K - 1);
  plan.pitch =
      round_up(plan.width, request.vector) + (backward ? request.vector : 0);
  plan.columns = chunks_of(plan.width, request.vector);
  plan.tap_pitch = static_cast<int>(round_up<int64_t>(K, 8) + 4);
  plan.grad_pitch = plan.tap_pitch;
  const int64_t row_sets = request.per_row ? rows : 1;
  const int64_t stat_rows =
      plan.heads * (request.per_row ? (backward ? plan.in_rows : rows) : 1);
  const int64_t pairs = plan.heads * rows * chunks_of<int64_t>(K, 8);
  plan.splits = pairs * 4 <= kConvThreads ? 4
      : pairs * 2 <= kConvThreads         ? 2
                                          : 1;
  SharedLayout layout;
  plan.taps_at =
      layout.add(plan.heads * row_sets * plan.tap_pitch, request.sum_bytes);
  plan.stats_at = layout.add(backward ? stat_rows : 0, 2 * request.sum_bytes);
  add_staged_rows(layout, plan, request);
  if (backward)
    plan.grads_at = layout.add(
        plan.splits * plan.heads * rows * plan.grad_pitch,
        request.sum_bytes);
  plan.shared = layout.size();
  return plan;
}

/// The largest tiles that leave room for other blocks; small ones only where
/// kernels are so long that nothing else fits. `blocks` = 0: nothing does.
inline ConvPlan plan_fma(const ConvPlanRequest& request) {
  struct Choice {
    int64_t budget;
    int fewest_rows;
    int64_t min_width;
  };
  for (const Choice& choice :
       {Choice{kSmallShared, 64, 32},
        {kMediumShared, 64, 16},
        {kMediumShared, 32, 16},
        {kMaxShared, 8, 1}})
    for (int rows = 64; rows >= choice.fewest_rows; rows /= 2)
      for (int64_t width = 64;
           width >= max<int64_t>(choice.min_width, request.vector);
           width /= 2) {
        const ConvPlan plan = fma_plan(request, rows, width);
        if (plan.shared <= min(choice.budget, request.limit))
          return plan;
      }
  return {};
}

/// What the kernels of a convolution are given, S as in ConvForward.
template <class S>
struct ConvTask {
  ConvPlan plan;
  TapSource taps;
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  int all_heads = 1;
  int head_channels = 1;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;
  const AccumulatorOf<S>* bias = nullptr;
  S* out = nullptr;                  ///< y, or grad_x, null if not wanted
  void* grad_logits = nullptr;       ///< written where sums is null
  AccumulatorOf<S>* sums = nullptr;  ///< [units, H, K], over positions

  SEQCONV_HD bool wants_logits() const { return grad_logits != nullptr; }
};

/// One tile of a block.
struct ConvTile {
  int64_t b = 0;
  int64_t first = 0;  ///< position
  int64_t valid = 0;  ///< real positions of the sequence
  int head = 0;       ///< first of
  int heads = 0;      ///< so many

  SEQCONV_HD int real(int rows) const {
    return static_cast<int>(clamped<int64_t>(valid - first, 0, rows));
  }
};

/// The tiles of a block: [begin, end) of B * tiles, fewer than 2^31.
template <class S>
struct ConvTiles {
  const ConvTask<S>& task;
  int64_t unit;
  int head;
  int64_t begin;
  int64_t end;

  SEQCONV_HD ConvTiles(const ConvTask<S>& of, int64_t block)
      : task(of),
        unit(
            static_cast<uint32_t>(block) /
            static_cast<uint32_t>(of.plan.groups)),
        head(static_cast<int>(block - unit * of.plan.groups) * of.plan.heads),
        begin(unit * of.plan.tiles_per_block),
        end(min<int64_t>(
            begin + of.plan.tiles_per_block,
            of.batch * of.plan.tiles)) {}

  SEQCONV_HD ConvTile tile(int64_t n) const {
    ConvTile at;
    const auto tiles = static_cast<uint32_t>(task.plan.tiles);
    const uint32_t b = static_cast<uint32_t>(n) / tiles;
    at.b = b;
    at.first = static_cast<int64_t>(n - int64_t{b} * tiles) * task.plan.rows;
    at.valid = valid_steps(task.lengths, at.b, task.steps);
    at.head = head;
    at.heads = min(task.plan.heads, task.all_heads - head);
    return at;
  }
};

}  // namespace seqconv::kernels::cuda
