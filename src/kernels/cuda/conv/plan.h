#pragma once

#include "kernels/cuda/common/tiles.h"
#include "kernels/cuda/conv/taps.h"

/// How a convolution is cut into blocks, and where a block keeps what in its
/// shared memory. Depends on sizes alone, and where kernels are so long that
/// they need it on what a block may have: the same sums in the same order.
namespace seqconv::internal::kernels::cuda {

/// Blocks that fill any device: with more tiles, a block takes several, for
/// which it makes shared taps once.
inline constexpr int64_t kManyBlocks = 2048;
inline constexpr int kBand = 16;  ///< rows of a band (band.h)
inline constexpr int kFewestBandTaps = 15;
/// Bands' gradients that are kept apart where only their sum is wanted.
inline constexpr int kBandSums = 2;

/// A block takes `tiles_per_block` tiles in turn.
struct ConvPlan : TilePlan {
  int in_rows = 0;     ///< rows + K - 1, or as many as tensor cores read
  int pitch = 0;       ///< elements from one staged row to the next
  int tap_pitch = 0;   ///< elements from one row of taps to the next
  int grad_pitch = 0;  ///< likewise of their gradients
  int grad_rows = 0;   ///< those of a head that are kept apart
  int split_bits = 0;  ///< 2^so many lanes share a row's gradient
  int logit_rows = 0;  ///< rows of logits that fit where x is staged later
  int vector = 1;      ///< channels that a thread of FMA takes at once
  int tiles_per_block = 1;
  bool uses_bands = false;  ///< tensor cores (band.h)
  int64_t units = 0;        ///< blocks of one group of heads
  int64_t taps_at = 0;      ///< offsets in shared memory, bytes
  int64_t stats_at = 0;
  int64_t grads_at = 0;
  int64_t x_at = 0;
  int64_t y_at = 0;
  int64_t shared = 0;
};

/// What a plan is made for.
struct ConvPlanRequest {
  ConvShape shape;
  bool backward = false;
  bool per_row = false;  ///< taps for every position
  int vector = 1;        ///< channels that a thread takes at once
  int storage_bytes = 4;
  int64_t limit = kMaxShared;    ///< what a block may have on this device
  bool has_tensor_cores = true;  ///< for x's type

  int kernel_size() const { return static_cast<int>(shape.kernel_size); }
};

/// Sets tiles and blocks. Taps `per_row` never share a block between tiles.
inline void set_blocks(
    ConvPlan& plan, const ConvPlanRequest& request, int rows, int64_t width, int64_t most_heads) {
  const ConvShape& shape = request.shape;
  plan.set_tiles(shape, rows, width, most_heads);
  const int64_t all = shape.batch * plan.tiles;
  plan.tiles_per_block = request.per_row
      ? 1
      : static_cast<int>(clamped<int64_t>(all * plan.groups / kManyBlocks, 1, 16));
  plan.units = chunks_of<int64_t>(all, plan.tiles_per_block);
  plan.blocks = plan.units * plan.groups;
}

/// Lays out shared memory for so many bytes of taps; the rest of the plan is
/// there. Logits pass through the memory of staged rows before and after: there
/// is room for one at least.
inline void lay_out(ConvPlan& plan, const ConvPlanRequest& request, int64_t tap_bytes) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t logit_bytes = kFloat * logit_pitch(request.kernel_size());
  const int64_t staged = int64_t{plan.in_rows} * plan.pitch * request.storage_bytes;
  const int64_t stats = request.per_row ? plan.rows + request.shape.kernel_size - 1 : 1;
  SharedLayout layout;
  plan.taps_at = layout.add(tap_bytes, 1);
  plan.stats_at = layout.size();
  if (request.backward)
    layout.add(plan.heads * stats, sizeof(RowStats));
  plan.x_at = layout.add(max(staged, logit_bytes), 1);
  if (request.backward)
    plan.y_at = layout.add(staged, 1);
  plan.logit_rows = static_cast<int>((layout.size() - plan.x_at) / logit_bytes);
  if (request.backward)
    plan.grads_at = layout.add(plan.heads * plan.grad_rows * plan.grad_pitch, kFloat);
  plan.shared = layout.size();
}

/// The plan of the FMA kernels with `rows` and `width`.
inline ConvPlan fma_plan(const ConvPlanRequest& request, int rows, int64_t width) {
  const int K = request.kernel_size();
  ConvPlan plan;
  set_blocks(plan, request, rows, width, request.shape.heads);
  plan.vector = request.vector;
  plan.in_rows = rows + K - 1;
  plan.pitch = round_up(plan.width, request.vector) + (request.backward ? request.vector : 0);
  plan.set_columns(chunks_of(plan.width, request.vector));
  plan.tap_pitch = round_up(K, 8) + 4;
  plan.grad_pitch = plan.tap_pitch;
  plan.grad_rows = request.per_row ? rows : chunks_of(rows, kWarp);
  const int shares = plan.heads * rows * chunks_of(K, 8);
  plan.split_bits = shares * 4 <= kThreads ? 2 : shares * 2 <= kThreads ? 1 : 0;
  const int64_t taps = int64_t{plan.heads} * (request.per_row ? rows : 1) * plan.tap_pitch;
  lay_out(plan, request, taps * static_cast<int64_t>(sizeof(float)));
  return plan;
}

/// The largest tiles that leave room for other blocks; small ones only where
/// kernels are so long that nothing else fits. `rows` = 0: nothing does.
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
      for (int64_t width = 64; width >= max<int64_t>(choice.min_width, request.vector);
           width /= 2) {
        const ConvPlan plan = fma_plan(request, rows, width);
        if (plan.shared <= min(choice.budget, request.limit))
          return plan;
      }
  return {};
}

/// Columns of a band.
SEQCONV_HD constexpr int band_columns(int kernel_size) {
  return round_up(kBand + kernel_size - 1, 16);
}
/// Elements of one half (upper or lower parts of taps) of a block's bands.
SEQCONV_HD int band_elements(const ConvPlan& plan, bool per_row) {
  return (per_row ? plan.rows : kBand) * plan.tap_pitch;
}

/// The plan of the tensor core kernels with `rows` (64 or 32).
inline ConvPlan band_plan(const ConvPlanRequest& request, int rows) {
  const int K = request.kernel_size();
  ConvPlan plan;
  set_blocks(plan, request, rows, 64, /*most_heads=*/1);
  plan.uses_bands = true;
  plan.in_rows = rows - kBand + band_columns(K);
  plan.set_columns(round_up(plan.width, 16) / 8);
  // Eight elements more than whole fragments: rows lie in different banks.
  plan.pitch = round_up(plan.width, 16) + 8;
  plan.tap_pitch = band_columns(K) + 8;
  plan.grad_pitch = round_up(K, 8) + 4;
  plan.grad_rows = request.per_row ? rows : kBandSums * kBand;
  lay_out(plan, request, 2 * band_elements(plan, request.per_row) * request.storage_bytes);
  return plan;
}

/// Whether and how tensor cores can: `rows` = 0 where they cannot.
inline ConvPlan plan_band(const ConvPlanRequest& request) {
  const ConvShape& shape = request.shape;
  if (!request.has_tensor_cores || request.storage_bytes != 2 ||
      shape.kernel_size < kFewestBandTaps || shape.kernel_size > kMaxShared ||
      shape.head_channels() % 8 != 0)
    return {};
  const ConvPlan large = band_plan(request, 64);
  if (large.shared <= min(kMediumShared, request.limit))
    return large;
  const ConvPlan small = band_plan(request, 32);
  return small.shared <= request.limit ? small : ConvPlan{};
}

}  // namespace seqconv::internal::kernels::cuda
