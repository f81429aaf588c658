#pragma once

#include "kernels/cuda/conv/normalize.h"
#include "kernels/cuda/conv/plan.h"

/// What a block of a convolution works on, and how its rows get into shared
/// memory.
namespace seqconv::kernels::cuda {

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
  const float* bias = nullptr;
  S* out = nullptr;             ///< y, or grad_x, null if not wanted
  void* grad_logits = nullptr;  ///< written where sums is null
  float* sums = nullptr;        ///< [units, H, K], over positions

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

/// Where a block copies logits while it does not need x.
template <class S>
SEQCONV_DEVICE LogitRows logit_rows(char* shared, const ConvTask<S>& task) {
  return {
      shared_at<float>(shared, task.plan.x_at),
      logit_pitch(task.taps.kernel_size),
      task.plan.logit_rows};
}

/// Channels [first, first + width) of a tile's heads.
struct Chunk {
  int64_t first = 0;
  int width = 0;
};

/// Chunk `i` of a tile: all of several heads, or a chunk of one.
template <class S>
SEQCONV_DEVICE Chunk
chunk_of(const ConvTask<S>& task, const ConvTile& tile, int i) {
  const int R = task.head_channels;
  const int64_t first = static_cast<int64_t>(tile.head) * R;
  if (tile.heads > 1)
    return {first, tile.heads * R};
  const int begin = i * task.plan.width;
  return {first + begin, min(task.plan.width, R - begin)};
}
template <class S>
SEQCONV_DEVICE int chunks_of(const ConvTask<S>& task, const ConvTile& tile) {
  return tile.heads > 1 ? 1 : chunks_of(task.head_channels, task.plan.width);
}

/// A thread's pack of every row that it takes: rows `row`, row + step, ...;
/// none, with row beyond all, for threads that are left over.
struct ColumnOfRows {
  int column;
  int row;
  int step;
};
template <int V>
SEQCONV_DEVICE ColumnOfRows
column_of_rows(const ConvPlan& plan, int thread, int width) {
  const int step = plan.by_columns.quotient(kThreads);
  const int row = plan.by_columns.quotient(thread);
  const int column = (thread - row * plan.columns) * V;
  return {column, row < step && column < width ? row : 1 << 30, step};
}

/// One phase: the plan's in_rows of a chunk of tensor [B, T, C], from `first`
/// on, into shared memory, zero outside the sequence and from the chunk's width
/// up to `padded` channels.
template <int V, class S, class Block>
SEQCONV_DEVICE void stage_rows(
    Block& block,
    const ConvTask<S>& task,
    const S* tensor,
    const ConvTile& tile,
    const Chunk& chunk,
    int64_t first,
    int padded,
    S* to) {
  const int rows = task.plan.in_rows;
  const int begin = static_cast<int>(clamped<int64_t>(-first, 0, rows));
  const int end =
      static_cast<int>(clamped<int64_t>(tile.valid - first, 0, rows));
  const S* const from =
      tensor + (tile.b * task.steps + first) * task.channels + chunk.first;
  const int pitch = task.plan.pitch, channels = static_cast<int>(task.channels);
  block.each([&](int thread) {
    const auto at = column_of_rows<V>(task.plan, thread, padded);
    const bool filled = at.column < chunk.width;
    load_ahead<4>(
        at.row,
        rows,
        at.step,
        [&](int r) {
          return filled && r >= begin && r < end
              ? load_pack<S, V>(from + (offset_of(r, channels) + at.column))
              : Pack<S, V>{};
        },
        [&](int r, const Pack<S, V>& pack) {
          store_pack<S, V>(to + r * pitch + at.column, pack);
        });
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

  SEQCONV_DEVICE int head_of(int i) const {
    return kManyHeads ? heads.quotient(i) : 0;
  }
  SEQCONV_DEVICE int64_t base_of(int head, int r) const {
    return base + offset_of(r, taps.step_stride) +
        offset_of(head, taps.kernel_size);
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

}  // namespace seqconv::kernels::cuda
