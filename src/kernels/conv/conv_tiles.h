#pragma once

#include <utility>

#include "kernels/common/tiles.h"
#include "kernels/conv/conv_kernels.h"

/// Tiles of a convolution: some rows of some heads of one sequence. Where the
/// cuts are depends on sizes alone.
namespace seqconv::internal::kernels {

/// A tile of a sequence and the heads [head, head + heads).
struct ConvPlace {
  int64_t batch = 0;
  int64_t tile = 0;   ///< its number among those of all sequences
  int64_t first = 0;  ///< position of row 0
  int64_t rows = 0;
  int64_t valid = 0;  ///< real positions of the sequence
  int64_t head = 0;
  int64_t heads = 1;

  /// Rows that are real.
  int64_t real() const { return std::clamp<int64_t>(valid - first, 0, rows); }
};

/// How [B, T, H] is cut into places: `step` positions, `heads` heads.
struct PlaceGrid {
  const ConvShape& shape;
  const int64_t* lengths;
  int64_t step;
  int64_t heads;
  int64_t tiles = ceil_div(shape.steps, step);  ///< of a sequence
  int64_t groups = ceil_div(shape.heads, heads);

  int64_t count() const { return shape.batch * tiles * groups; }
  /// Groups of heads follow each other fastest.
  ConvPlace get(int64_t item) const {
    const TileIndex at(item, tiles, groups);
    const int64_t first = at.tile * step, head = at.group * heads;
    return {
        .batch = at.batch,
        .tile = at.batch * tiles + at.tile,
        .first = first,
        .rows = std::min(step, shape.steps - first),
        .valid = valid_rows(lengths, at.batch, shape.steps),
        .head = head,
        .heads = std::min(heads, shape.heads - head)};
  }
};

/// Positions of a place in a forward pass: fewer where there would be too few
/// places for many threads.
inline int64_t forward_rows(const ConvShape& shape) {
  constexpr int64_t kMax = 64, kMin = 16, kPlaces = 64;
  int64_t rows = kMax;
  while (rows > kMin && shape.batch * ceil_div(shape.steps, rows) < kPlaces)
    rows /= 2;
  return rows;
}

/// Heads of a place that is walked through row by row: whole rows, unless those
/// that an output sees would leave the second-level cache.
inline int64_t heads_of_rows(const ConvShape& shape) {
  constexpr int64_t kMaxChannels = 1024;
  const int64_t groups = ceil_div(shape.channels, kMaxChannels);
  return ceil_div(shape.heads, std::min(groups, shape.heads));
}

/// Heads of a place of tile_rows(K) in a backward pass: as many as leave their
/// taps, and those of K-1 positions around them, in the second-level cache
/// (`shared`: there are next to none), or one if there would be too few places
/// for many threads.
inline int64_t backward_heads(const ConvShape& shape, bool shared) {
  constexpr int64_t kMaxTaps = 1 << 17, kPlaces = 16;
  const int64_t K = shape.kernel_size, rows = tile_rows(K);
  if (shape.batch * ceil_div(shape.steps, rows) < kPlaces)
    return 1;
  const int64_t most = heads_of_rows(shape);
  const int64_t taps = shared ? 0 : (rows + K - 1) * tap_pitch(K);
  return std::clamp<int64_t>(kMaxTaps / std::max<int64_t>(1, taps), 1, most);
}

/// Rows whose taps, so many for each of them, stay in the first-level cache: a
/// multiple of what a convolution takes at once.
inline int64_t rows_together(int64_t taps_of_row) {
  constexpr int64_t kTaps = 4096;
  return std::max<int64_t>(1, kTaps / taps_of_row / kRowBlock) * kRowBlock;
}

/// Elements between what is read and what is prefetched of it: some rows, or
/// the next head where a place has one alone.
inline int64_t prefetch_distance(const ConvShape& shape, int64_t heads) {
  constexpr int64_t kRows = 8;
  return heads < shape.heads ? heads * shape.head_channels() : kRows * shape.channels;
}

/// Calls work(place) for all places, where make_work() makes the work of one
/// thread.
template <class MakeWork>
void for_places(
    const PlaceGrid& grid,
    int64_t operations_per_place,
    const Execution& run,
    const MakeWork& make_work) {
  run.parallel_for(grid.count(), grain_for(operations_per_place), [&](int64_t begin, int64_t end) {
    auto work = make_work();
    for (int64_t item = begin; item < end; ++item)
      work(grid.get(item));
  });
}

}  // namespace seqconv::internal::kernels
