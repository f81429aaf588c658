#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/tiles.h"
#include "kernels/talk/talk_kernels.h"
#include "seqconv/kernels/talk.h"

/// Windows of TaLK for tiles of one head, of two windows side by side, or of
/// kTalkLanes channels of heads so narrow that they share a tile.
namespace seqconv::kernels {

/// Rows of a tile: windows of neighbours reach into it, so that longer ones
/// waste less.
inline constexpr int64_t kTalkRows = 256;

/// Channels [channel, channel + channels) of sequence `batch` with `lanes`
/// windows a position (talk_pitch()).
struct TalkStrip {
  int64_t batch = 0;
  int64_t channel = 0;
  int64_t channels = 0;
  int64_t lanes = 1;

  bool narrow() const { return lanes == kTalkLanes; }
};

/// Positions [first, first + count) of a sequence whose first `valid` ones are
/// real.
struct TalkRows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t valid = 0;

  /// How many of these are real.
  int64_t real() const { return std::clamp<int64_t>(valid - first, 0, count); }
  bool operator==(const TalkRows&) const = default;
};

/// Rows number `index` of sequence b.
inline TalkRows talk_rows_of(
    const TalkShape& shape,
    const int64_t* lengths,
    int64_t b,
    int64_t index) {
  const int64_t first = index * kTalkRows;
  return {
      .first = first,
      .count = std::min(kTalkRows, shape.steps - first),
      .valid = valid_rows(lengths, b, shape.steps)};
}

/// Rows of one of the sequences.
struct TalkBlock {
  int64_t batch = 0;
  TalkRows rows;

  bool operator==(const TalkBlock&) const = default;
};

inline int64_t head_of(const TalkShape& shape, int64_t channel) {
  return channel / shape.head_channels();
}

/// What a sum is multiplied by.
template <class A>
A talk_scale(const TalkShape& shape) {
  return A(1) / static_cast<A>(shape.window());
}

/// How channels are cut into strips.
class TalkStrips {
 public:
  /// Heads of fewer channels than `own` share strips; with `pairs`, strips are
  /// as wide as two windows.
  TalkStrips(const TalkShape& shape, int64_t own, bool pairs = false)
      : channels_(shape.channels), part_(shape.head_channels()) {
    if (part_ < own) {
      lanes_ = width_ = kTalkLanes;
      part_ = channels_;
    } else if (pairs) {
      lanes_ = 2;
      part_ = width_ = kPair;
    }
    of_part_ = ceil_div(std::max<int64_t>(part_, 1), width_);
    parts_ = part_ == 0 ? 0 : channels_ / part_;
  }

  /// Whether rows lie a multiple of 4 KB apart, so that the lines of narrow
  /// columns fight for the same cache sets, and all windows have pairs.
  static bool can_pair(const TalkShape& shape, size_t element) {
    constexpr size_t kPage = 4096;
    return static_cast<size_t>(shape.channels) * element % kPage == 0 &&
        shape.channels % kPair == 0 &&
        shape.head_channels() % kTalkChannels == 0;
  }

  int64_t parts() const { return parts_; }
  int64_t of_part() const { return of_part_; }
  int64_t count() const { return parts_ * of_part_; }
  bool narrow() const { return lanes_ == kTalkLanes; }
  TalkStrip get(int64_t batch, int64_t strip) const {
    const int64_t first = strip % of_part_ * width_;
    return {
        .batch = batch,
        .channel = strip / of_part_ * part_ + first,
        .channels = std::min(width_, part_ - first),
        .lanes = lanes_};
  }

 private:
  static constexpr int64_t kPair = 2 * kTalkChannels;

  int64_t channels_;
  int64_t part_;  // channels whose strips are alike: a head, a pair, or all
  int64_t lanes_ = 1;
  int64_t width_ = kTalkChannels;  // of a strip
  int64_t of_part_ = 1;            // strips of a part
  int64_t parts_ = 0;
};

/// How far windows of `count` offsets reach: those of models lie in [0, 1],
/// others may reach further or to the other side.
template <class O, class A>
TalkReach reach_of(
    const TalkShape& shape,
    const O* left,
    const O* right,
    int64_t count,
    Isa isa) {
  const auto extremes = talk_kernels<O, A>(isa).extremes;
  const auto to_left = extremes(left, count);
  const auto to_right =
      right == nullptr ? TalkExtremes<A>{} : extremes(right, count);
  const auto tokens = [&](A max, int64_t scale) {
    const A distance = std::ceil(std::max<A>(0, max * static_cast<A>(scale)));
    // As a number of A, steps may be rounded.
    return distance >= static_cast<A>(shape.steps)
        ? shape.steps
        : static_cast<int64_t>(distance);
  };
  return {
      .left = std::max(
          tokens(to_left.max, shape.max_left),
          tokens(-to_right.min, shape.max_right)),
      .right = 1 +
          std::max(tokens(to_right.max, shape.max_right),
                   tokens(-to_left.min, shape.max_left))};
}

/// Elements from a strip of rows [first, first + rows) to the one that is
/// worked on next.
inline int64_t
next_strip(const TalkShape& shape, const TalkStrip& strip, int64_t rows) {
  const int64_t end = strip.channel + strip.channels;
  return end < shape.channels ? strip.channels
                              : rows * shape.channels - strip.channel;
}

/// How far the windows of each sequence reach.
template <class O, class A = AccumulatorOf<O>>
std::vector<TalkReach> talk_reaches(
    const TalkShape& shape,
    const O* left,
    const O* right,
    const int64_t* lengths,
    const Execution& run) {
  const int64_t count = shape.steps * shape.heads;
  std::vector<TalkReach> reaches(static_cast<size_t>(shape.batch));
  run.parallel_for(
      shape.batch,
      grain_for(count / 8),
      [&](int64_t b, int64_t end) {
        for (; b < end; ++b)
          reaches[static_cast<size_t>(b)] = reach_of<O, A>(
              shape,
              left + b * count,
              right == nullptr ? nullptr : right + b * count,
              valid_rows(lengths, b, shape.steps) * shape.heads,
              run.isa);
      });
  return reaches;
}

}  // namespace seqconv::kernels
