#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/common/tiles.h"
#include "kernels/talk/talk_heads.h"

/// Tiles of TaLK and their windows.
namespace seqconv::internal::kernels {

/// Rows of a tile: windows of neighbours reach into it, so that longer ones
/// waste less.
inline constexpr int64_t kTalkRows = 256;

/// Positions [first, first + count) of a sequence.
struct TalkRows {
  int64_t batch = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t valid = 0;  ///< positions of the sequence that are real

  bool operator==(const TalkRows&) const = default;

  /// How many of these are real.
  int64_t real() const { return std::clamp<int64_t>(valid - first, 0, count); }
};

/// Calls Work(args, use, isa).run(rows, group) for groups 0 .. groups-1 of all
/// tiles, each of so many operations.
template <class Work, class Args>
void for_talk_tiles(
    const Args& args, CacheUse use, int64_t groups, int64_t operations, const Execution& run) {
  const TalkShape& shape = args.shape;
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * groups, grain_for(operations), [&](int64_t begin, int64_t end) {
        Work work(args, use, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, groups);
          const int64_t first = at.tile * kTalkRows;
          work.run(
              {.batch = at.batch,
               .first = first,
               .count = std::min(kTalkRows, shape.steps - first),
               .valid = valid_rows(args.lengths, at.batch, shape.steps)},
              at.group);
        }
      });
}

/// What a sum is multiplied by.
template <class A>
A talk_scale(const TalkShape& shape) {
  return A(1) / static_cast<A>(shape.window());
}

/// Elements from a strip of channels to the one that is worked on next.
inline int64_t talk_next(const TalkShape& shape, int64_t channel, int64_t channels, int64_t rows) {
  return channel + channels < shape.channels ? channels : rows * shape.channels - channel;
}

/// As cache_use(), of a pass over groups of heads: these are stored together.
/// Half a line, a vector of bfloat16, is not worth a store past the caches.
template <class S>
CacheUse talk_heads_cache_use(
    const Execution& run, const TalkShape& shape, const S* out, int64_t elements) {
  const auto is_whole = [](int64_t channels) {
    return channels * static_cast<int64_t>(sizeof(S)) % kCacheLine == 0;
  };
  CacheUse use = cache_use(run, shape, out, elements);
  use.streams = use.prefetches && !std::is_same_v<S, BFloat16> &&
      reinterpret_cast<uintptr_t>(out) % kCacheLine == 0 && is_whole(shape.channels) &&
      is_whole(talk_head_group(shape, 0).channels);
  return use;
}

/// Inputs of the window at t lie in [t - left, t + right).
struct TalkReach {
  int64_t left = 0;
  int64_t right = 1;

  /// Positions whose windows may hold an input, and so many inputs that a
  /// window may hold.
  int64_t rows() const { return left + right; }
};

/// How much of a row a window holds; NaN where it holds some of it and an edge
/// is NaN.
template <class A>
A talk_share(const TalkWindow<A>& w, int64_t row) {
  const A share = A(row > w.first) - A(row >= w.last) + (row == w.first ? w.left : A(0)) +
      (row == w.last ? w.right : A(0));
  return share == 0 ? share : share + 0 * (w.left + w.right);
}

/// Windows made of offsets [B, T, H], for one thread; what was made last is
/// kept for the next call.
template <class O, class A = AccumulatorOf<O>>
class TalkWindows {
 public:
  TalkWindows(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape), left_(left), right_(right), ops_(talk_kernels<O, A>(isa)) {}

  /// How far windows of all heads reach: those of models have offsets in
  /// [0, 1], others may reach further or to the other side.
  TalkReach reach(const TalkRows& rows) {
    if (reach_rows_ == rows)
      return reach_;
    const auto extremes = [&](const O* offsets) {
      return offsets == nullptr
          ? TalkExtremes<A>{}
          : ops_.extremes(offsets + place(rows, 0), rows.count * shape_.heads);
    };
    const auto left = extremes(left_), right = extremes(right_);
    reach_ = {
        .left = std::max(tokens(left.max, shape_.max_left), tokens(-right.min, shape_.max_right)),
        .right =
            1 + std::max(tokens(right.max, shape_.max_right), tokens(-left.min, shape_.max_left))};
    reach_rows_ = rows;
    return reach_;
  }

  /// Those of a head at some positions.
  const TalkWindow<A>* make(const TalkRows& rows, int64_t head) {
    if (made_rows_ == rows && made_head_ == head)
      return windows_.data();
    windows_.reserve(rows.count + kTalkSpare);
    ops_.windows(offsets(rows, head), windows_.data());
    made_rows_ = rows;
    made_head_ = head;
    return windows_.data();
  }

  /// The offsets that they are made of.
  TalkOffsets<O> offsets(const TalkRows& rows, int64_t head) const {
    const int64_t at = place(rows, head);
    return {
        .left = left_ + at,
        .right = right_ == nullptr ? nullptr : right_ + at,
        .stride = shape_.heads,
        .max_left = shape_.max_left,
        .max_right = shape_.max_right,
        .first = rows.first,
        .count = rows.count,
        .valid = rows.valid};
  }

 private:
  int64_t place(const TalkRows& rows, int64_t head) const {
    return (rows.batch * shape_.steps + rows.first) * shape_.heads + head;
  }
  int64_t tokens(A offset, int64_t max) const {
    const A distance = std::ceil(std::max<A>(0, offset * static_cast<A>(max)));
    // As a number of A, steps may be rounded.
    return distance >= static_cast<A>(shape_.steps) ? shape_.steps : static_cast<int64_t>(distance);
  }

  const TalkShape& shape_;
  const O* const left_;
  const O* const right_;
  const TalkKernels<O, A>& ops_;
  Scratch<TalkWindow<A>> windows_;
  TalkRows made_rows_;
  int64_t made_head_ = -1;
  TalkRows reach_rows_;
  TalkReach reach_;
};

}  // namespace seqconv::internal::kernels
