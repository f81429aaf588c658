#pragma once

#include <numeric>
#include <utility>
#include <vector>

#include "kernels/common/tiles.h"
#include "kernels/conv/conv_kernels.h"

/// Tiles of a convolution: some rows of some heads of one sequence. Where the
/// cuts are depends on sizes alone.
namespace seqconv::internal::kernels {

/// Positions that a convolution without dilation goes over. One with D makes D
/// of a sequence, of every D-th position each: their taps do not meet.
struct Sequence {
  int64_t row = 0;     ///< of position 0 in the tensors
  int64_t stride = 1;  ///< rows from a position to the next: D
  int64_t steps = 0;   ///< positions
  int64_t valid = 0;   ///< real ones
  int64_t past = 0;    ///< row of the first of K-1 inputs before

  int64_t at(int64_t t) const { return row + t * stride; }
};

/// The sequences of a call, dilated ones as several.
struct Sequences {
  const ConvShape& shape;
  const int64_t* lengths = nullptr;
  const int64_t* offsets = nullptr;

  int64_t count() const { return shape.batch * shape.dilation; }
  /// Rows of all of them, and tiles of `step` rows that there are about.
  int64_t all_rows() const { return (offsets == nullptr ? shape.batch : 1) * shape.steps; }
  int64_t tiles(int64_t step) const {
    return (offsets == nullptr ? shape.batch : 1) * ceil_div(shape.steps, step);
  }
  /// Rows of sequence b of the call, its own and those that are real.
  int64_t first(int64_t b) const { return offsets == nullptr ? b * shape.steps : offsets[b]; }
  int64_t rows(int64_t b) const {
    return offsets == nullptr ? shape.steps : offsets[b + 1] - offsets[b];
  }
  int64_t real(int64_t b) const { return lengths == nullptr ? rows(b) : lengths[b]; }
  Sequence get(int64_t i) const {
    const int64_t D = shape.dilation, b = i / D, phase = i % D;
    const auto positions = [&](int64_t rows) {
      return std::max<int64_t>(0, ceil_div(rows - phase, D));
    };
    return {
        .row = first(b) + phase,
        .stride = D,
        .steps = positions(rows(b)),
        .valid = positions(real(b)),
        .past = b * (shape.kernel_size - 1) * D + phase};
  }
};

/// A tile of a sequence and the heads [head, head + heads).
struct ConvPlace {
  Sequence sequence;
  int64_t tile = 0;   ///< its number among those of all sequences
  int64_t first = 0;  ///< position of row 0
  int64_t rows = 0;
  int64_t head = 0;
  int64_t heads = 1;

  /// Rows that are real.
  int64_t real() const { return std::clamp<int64_t>(sequence.valid - first, 0, rows); }
};

/// Cuts sequences into tiles of `step` positions, and these into places of
/// `heads` heads.
class PlaceGrid {
 public:
  PlaceGrid(const Sequences& sequences, int64_t step, int64_t heads)
      : sequences_(sequences),
        step_(step),
        heads_(heads),
        groups_(ceil_div(sequences.shape.heads, heads)),
        each_(ceil_div(ceil_div(sequences.shape.steps, sequences.shape.dilation), step)) {
    if (sequences.offsets == nullptr)
      return;
    firsts_.reserve(static_cast<size_t>(sequences.count()));
    for (int64_t i = 0; i < sequences.count(); ++i) {
      firsts_.push_back(packed_);
      packed_ += ceil_div(sequences.get(i).steps, step);
    }
  }

  int64_t step() const { return step_; }
  int64_t heads() const { return heads_; }
  int64_t groups() const { return groups_; }
  int64_t tiles() const {
    return sequences_.offsets == nullptr ? sequences_.count() * each_ : packed_;
  }
  int64_t count() const { return tiles() * groups_; }

  /// Groups of heads follow each other fastest.
  ConvPlace get(int64_t item) const { return get(item / groups_, item % groups_); }
  ConvPlace get(int64_t tile, int64_t group) const {
    int64_t i = 0, number = 0;  // of the sequence, and of the tile in it
    if (sequences_.offsets == nullptr) {
      i = tile / each_;
      number = tile % each_;
    } else {
      i = std::upper_bound(firsts_.begin(), firsts_.end(), tile) - firsts_.begin() - 1;
      number = tile - firsts_[static_cast<size_t>(i)];
    }
    const Sequence sequence = sequences_.get(i);
    const int64_t first = number * step_, head = group * heads_;
    return {
        .sequence = sequence,
        .tile = tile,
        .first = first,
        .rows = std::clamp<int64_t>(sequence.steps - first, 0, step_),
        .head = head,
        .heads = std::min(heads_, sequences_.shape.heads - head)};
  }

 private:
  Sequences sequences_;
  int64_t step_, heads_, groups_;
  int64_t each_;                 ///< tiles of a sequence that is not packed
  int64_t packed_ = 0;           ///< tiles of those that are
  std::vector<int64_t> firsts_;  ///< their first tiles
};

/// Positions of a place in a forward pass: fewer where there would be too few
/// places for many threads.
inline int64_t forward_rows(const Sequences& sequences) {
  constexpr int64_t kMax = 64, kMin = 16, kPlaces = 64;
  int64_t rows = kMax;
  while (rows > kMin && sequences.tiles(rows) < kPlaces)
    rows /= 2;
  return rows;
}

/// Most heads with so many channels, in groups that are about as large.
inline int64_t heads_of_channels(const ConvShape& shape, int64_t channels) {
  const int64_t groups = ceil_div(shape.channels, channels);
  return ceil_div(shape.heads, std::min(groups, shape.heads));
}

/// Heads of a place that is walked through row by row: whole rows, unless those
/// that an output sees would leave the second-level cache.
inline int64_t heads_of_rows(const ConvShape& shape) {
  return heads_of_channels(shape, 1024);
}

/// Heads whose taps of kChannelTapRows rows are made together: they stay in the
/// first-level cache, and their channels begin at lines.
inline int64_t heads_of_channel_taps(const ConvShape& shape) {
  constexpr int64_t kTaps = 1 << 13, kFewest = 64;
  const int64_t heads = heads_of_channels(
      shape, std::clamp<int64_t>(kTaps / kChannelTapRows / shape.kernel_size, kFewest, 1024));
  const int64_t unit = kTapSlack / std::gcd(kTapSlack, shape.head_channels());
  return ceil_div(heads, unit) * unit;
}

/// Heads of a place of tile_rows(K) in a backward pass: as many as leave their
/// taps, and those of K-1 positions around them, in the second-level cache
/// (`shared`: there are next to none), or a few channels if there would be too
/// few places for many threads.
inline int64_t backward_heads(const Sequences& sequences, bool shared, bool by_channel) {
  constexpr int64_t kMaxTaps = 1 << 17, kPlaces = 16;
  const ConvShape& shape = sequences.shape;
  const int64_t K = shape.kernel_size, rows = tile_rows(K);
  const int64_t fewest = by_channel ? heads_of_channels(shape, kStagePitch) : 1;
  if (sequences.tiles(rows) < kPlaces)
    return fewest;
  const int64_t most = std::max(fewest, heads_of_rows(shape));
  const int64_t pitch = by_channel ? K * shape.head_channels() : tap_pitch(K);
  const int64_t taps = shared ? 0 : (rows + K - 1) * pitch;
  return std::clamp<int64_t>(kMaxTaps / std::max<int64_t>(1, taps), fewest, most);
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
  return heads < shape.heads ? heads * shape.head_channels()
                             : kRows * shape.dilation * shape.channels;
}

/// The channels that stores of a place fill without a gap: all of its heads', if
/// vectors hold several heads.
inline int64_t stored_channels(const ConvShape& shape, const PlaceGrid& grid, bool by_channel) {
  const int64_t R = shape.head_channels(), place = grid.heads() * R;
  return by_channel && grid.groups() > 1 ? std::gcd(place, shape.channels)
      : by_channel                       ? shape.channels
                                         : R;
}

/// Operations of a place, about.
inline int64_t operations(const ConvShape& shape, const PlaceGrid& grid) {
  return grid.step() * grid.heads() * (shape.head_channels() + 8) * shape.kernel_size;
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
