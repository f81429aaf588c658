#pragma once

#include "kernels/cuda/conv/normalize.h"
#include "kernels/cuda/conv/plan.h"

/// What a block of a convolution works on, and how its rows get into shared
/// memory.
namespace seqconv::internal::kernels::cuda {

/// What the kernels of a convolution are given, S as in ConvForward.
template <class S>
struct ConvTask : TileTask<S> {
  ConvPlan plan;
  TapSource taps;
  const float* bias = nullptr;
  void* grad_logits = nullptr;  ///< written where sums is null
  float* sums = nullptr;        ///< [units, H, K], over positions

  SEQCONV_HD bool wants_logits() const { return grad_logits != nullptr; }
};

using ConvTile = Tile<int64_t>;

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
        unit(static_cast<uint32_t>(block) / static_cast<uint32_t>(of.plan.groups)),
        head(static_cast<int>(block - unit * of.plan.groups) * of.plan.heads),
        begin(unit * of.plan.tiles_per_block),
        end(min<int64_t>(begin + of.plan.tiles_per_block, of.batch * of.plan.tiles)) {}

  SEQCONV_HD ConvTile tile(int64_t n) const { return {task, static_cast<uint32_t>(n), head}; }
};

/// Where a block copies logits while it does not need x.
template <class S>
SEQCONV_DEVICE LogitRows logit_rows(char* shared, const ConvTask<S>& task) {
  return {
      shared_at<float>(shared, task.plan.x_at),
      logit_pitch(task.taps.kernel_size),
      task.plan.logit_rows};
}

/// One phase: the plan's in_rows of a chunk of tensor [B, T, C], from `before`
/// positions before the tile on, into shared memory as the path wants them: by
/// kVector channels, zero outside the sequence and from the chunk's width up to
/// a multiple of kPadding.
template <class Path, class S, class Block>
SEQCONV_DEVICE void stage_rows(
    Block& block,
    const ConvTask<S>& task,
    const S* tensor,
    const ConvTile& tile,
    const Chunk& chunk,
    int before,
    S* to) {
  constexpr int V = Path::kVector;
  const int rows = task.plan.in_rows;
  const int padded = round_up(chunk.width, Path::kPadding);
  const int64_t first = tile.first - before;
  const int begin = static_cast<int>(clamped<int64_t>(-first, 0, rows));
  const int end = static_cast<int>(clamped<int64_t>(tile.valid - first, 0, rows));
  const S* const from = tensor + task.element(tile.b, first, chunk.first);
  const int pitch = task.plan.pitch, channels = static_cast<int>(task.channels);
  block.each([&](int thread) {
    const Place<V> at(task.plan, thread);
    if (at.is_idle(padded))
      return;
    const int c = at.channel();
    load_ahead<4>(
        at.row,
        rows,
        at.stride,
        [&](int r) {
          return c < chunk.width && r >= begin && r < end
              ? load_pack<S, V>(from + (offset_of(r, channels) + c))
              : Pack<S, V>{};
        },
        [&](int r, const Pack<S, V>& pack) { store_pack<S, V>(to + r * pitch + c, pack); });
  });
}

/// The logits of a tile's outputs, one for each position or one a head; of one
/// head only unless kManyHeads. With `reversed` of all outputs that the tile's
/// inputs feed, K-1 more, from K-1-P before the tile on.
template <bool kPerRow, bool kManyHeads, class S>
struct TileRows {
  const TapSource& taps;
  int64_t first;  ///< position of row 0
  int64_t valid;
  int64_t base;   ///< of the first head, row 0
  Divisor heads;  ///< by the rows of one
  int rows;
  int begin;  ///< the real ones
  int end;

  SEQCONV_DEVICE
  TileRows(const ConvTask<S>& task, const ConvTile& tile, bool reversed)
      : taps(task.taps), valid(tile.valid) {
    const int before = taps.kernel_size - 1;
    first = tile.first - (reversed ? before - taps.padding_left : 0);
    rows = !kPerRow ? 1 : task.plan.rows + (reversed ? before : 0);
    base = kPerRow ? taps.row(tile.b, first, tile.head)
                   : static_cast<int64_t>(tile.head) * taps.kernel_size;
    heads = Divisor(rows);
    begin = static_cast<int>(clamped<int64_t>(-first, 0, rows));
    end = static_cast<int>(clamped<int64_t>(valid - first, 0, rows));
  }

  SEQCONV_DEVICE int head_of(int i) const { return kManyHeads ? heads.quotient(i) : 0; }
  SEQCONV_DEVICE int64_t base_of(int head, int r) const {
    return base + offset_of(r, taps.step_stride) + offset_of(head, taps.kernel_size);
  }
  /// Row i: head i / rows, position first + i % rows.
  SEQCONV_DEVICE TapRow operator()(int i, bool edges) const {
    if (!kPerRow)
      return {base + i * taps.kernel_size, 0, taps.kernel_size};
    const int head = head_of(i), r = i - head * rows;
    if (edges && taps.renormalize_edges)
      return tap_row(taps, base_of(head, r), first + r, valid);
    return {base_of(head, r), 0, r >= begin && r < end ? taps.kernel_size : 0};
  }
};

}  // namespace seqconv::internal::kernels::cuda
