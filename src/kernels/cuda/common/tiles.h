#pragma once

#include "kernels/cuda/common/launches.h"

/// How tensors [B, T, C] of H heads are dealt to blocks: positions in tiles,
/// channels by heads.
namespace seqconv::internal::kernels::cuda {

/// A block owns `rows` positions of `heads` neighbouring heads; of a head with
/// more than `width` channels it takes `width` at a time.
struct TilePlan {
  int rows = 0;
  int width = 0;
  int heads = 1;
  int groups = 1;   ///< of heads: H / heads, rounded up
  int chunks = 1;   ///< of the channels of a block's only head
  int columns = 1;  ///< packs of a row, each for one thread
  int strides = 1;  ///< rows that a block's threads take at once
  Divisor by_columns;
  int64_t tiles = 0;  ///< of a sequence
  int64_t blocks = 0;

  /// About `most` channels a block, and at most `most_heads` heads.
  template <class Shape>
  void set_tiles(const Shape& shape, int positions, int64_t most, int64_t most_heads) {
    const int64_t R = shape.head_channels();
    rows = positions;
    heads = static_cast<int>(clamped<int64_t>(most / R, 1, min(shape.heads, most_heads)));
    width = static_cast<int>(heads > 1 ? heads * R : min(most, R));
    chunks = heads > 1 ? 1 : static_cast<int>(chunks_of<int64_t>(R, width));
    groups = static_cast<int>(chunks_of<int64_t>(shape.heads, heads));
    tiles = chunks_of<int64_t>(shape.steps, rows);
  }
  void set_columns(int count) {
    columns = count;
    strides = kThreads / count;
    by_columns = Divisor(count);
  }
};

/// What all kernels over tiles are given.
template <class S>
struct TileTask {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  int all_heads = 1;
  int head_channels = 1;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;
  S* out = nullptr;  ///< y, or grad_x, null if not wanted

  template <class Shape>
  void set_shape(const Shape& shape, const int64_t* valid) {
    batch = shape.batch;
    steps = shape.steps;
    channels = shape.channels;
    all_heads = static_cast<int>(shape.heads);
    head_channels = static_cast<int>(shape.head_channels());
    lengths = valid;
  }
  SEQCONV_HD int64_t element(int64_t b, int64_t t, int64_t c) const {
    return (b * steps + t) * channels + c;
  }
};

/// Tile n of B * tiles, fewer than 2^31, and heads from `head` on. I holds any
/// position.
template <class I>
struct Tile {
  int64_t b = 0;
  I first = 0;  ///< position
  I valid = 0;  ///< real positions of the sequence
  int head = 0;
  int heads = 0;

  Tile() = default;
  template <class Task>
  SEQCONV_HD Tile(const Task& task, uint32_t n, int first_head)
      : head(first_head), heads(min(task.plan.heads, task.all_heads - head)) {
    const auto tiles = static_cast<uint32_t>(task.plan.tiles);
    b = n / tiles;
    first = static_cast<I>(n % tiles) * task.plan.rows;
    valid = static_cast<I>(valid_steps(task.lengths, b, task.steps));
  }
  /// Positions that are in the tensor, and those that are real.
  template <class Task>
  SEQCONV_HD int rows(const Task& task) const {
    return static_cast<int>(min<int64_t>(task.plan.rows, task.steps - first));
  }
  template <class Task>
  SEQCONV_HD int real(const Task& task) const {
    return static_cast<int>(clamped<I>(valid - first, 0, task.plan.rows));
  }
};

/// Channels [first, first + width) of the tensor: all of a tile's heads, or
/// chunk `i` of its only one.
struct Chunk {
  int64_t first;
  int width;

  template <class Task, class I>
  SEQCONV_HD Chunk(const Task& task, const Tile<I>& tile, int i) {
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

/// A thread's place among those that take V channels of a row each: it has the
/// channels from channel() on, in rows `row`, row + stride, ...; none where it
/// is idle.
template <int V>
struct Place {
  int column;
  int row;
  int stride;

  SEQCONV_DEVICE Place(const TilePlan& plan, int thread)
      : row(plan.by_columns.quotient(thread)), stride(plan.strides) {
    column = thread - row * plan.columns;
  }
  SEQCONV_DEVICE int channel() const { return column * V; }
  SEQCONV_DEVICE bool is_idle(int width) const { return row >= stride || channel() >= width; }
};

}  // namespace seqconv::internal::kernels::cuda
