#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/talk_tile_ops.h"
#include "kernels/tiles.h"
#include "seqconv/kernels/talk.h"

/// Windows of TaLK for tiles of one head, of two windows side by side, or of
/// kTalkLanes channels whose heads are narrower than a vector.
namespace seqconv::kernels {

/// Memory of TalkWindows.
template <class A>
class WindowArrays {
 public:
  /// For `count` windows.
  TalkWindows<A> get(int64_t count, bool inputs) {
    // Whole vectors are written and read.
    const int64_t entries = count + kTalkLanes;
    places_.reserve(4 * entries);
    fractions_.reserve(2 * entries);
    if (inputs)
      inputs_.reserve(2 * entries);
    return {
        places_.data(),
        fractions_.data(),
        inputs ? inputs_.data() : nullptr};
  }

 private:
  Scratch<int32_t> places_;
  Scratch<A> fractions_;
  Scratch<int32_t> inputs_;
};

/// Channels [channel, channel + channels) of sequence `batch` with `lanes`
/// windows a position (talk_pitch()).
struct TalkStrip {
  int64_t batch = 0;
  int64_t channel = 0;
  int64_t channels = 0;
  int64_t lanes = 1;

  bool narrow() const { return lanes == kTalkLanes; }
};

/// How channels are cut into strips.
class TalkStrips {
 public:
  /// With `pairs`, strips are as wide as two windows.
  explicit TalkStrips(const TalkShape& shape, bool pairs = false)
      : channels_(shape.channels), part_(shape.head_channels()) {
    if (part_ < kTalkLanes) {
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

/// Makes windows from offsets [B, T, H] of the type O. Distances to the
/// borders, not positions, are what is rounded.
template <class O, class A = AccumulatorOf<O>>
class WindowMaker {
 public:
  WindowMaker(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape),
        left_(left),
        right_(right),
        windows_(talk_ops<A, A>(isa).windows) {}

  /// Windows of positions [first, first + rows) of a strip; with `inputs` also
  /// the positions of their fractions.
  TalkWindows<A> make(
      const TalkStrip& strip,
      int64_t first,
      int64_t rows,
      int64_t valid,
      const TalkPlaces& places,
      bool inputs = false) {
    const int64_t count = rows * strip.lanes;
    to_left_.reserve(count);
    to_right_.reserve(count);
    distances(strip, first, rows, left_, shape_.max_left, to_left_.data());
    if (right_ != nullptr)
      distances(strip, first, rows, right_, shape_.max_right, to_right_.data());
    const TalkWindows<A> out = arrays_.get(count, inputs);
    windows_(
        {.left = to_left_.data(),
         .right = right_ == nullptr ? nullptr : to_right_.data(),
         .first = first,
         .lanes = strip.lanes,
         .count = count,
         .valid = valid},
        places,
        out);
    return out;
  }

 private:
  void distances(
      const TalkStrip& strip,
      int64_t first,
      int64_t rows,
      const O* offsets,
      int64_t most,
      A* out) const {
    const int64_t H = shape_.heads, R = shape_.head_channels();
    const A scale = static_cast<A>(most);
    const O* row = offsets + (strip.batch * shape_.steps + first) * H;
    if (strip.lanes == 1) {
      // The usual case, worth a loop without another in it.
      const int64_t head = strip.channel / R;
      for (int64_t t = 0; t < rows; ++t, row += H)
        out[t] = widen(row[head]) * scale;
      return;
    }
    const int64_t width = strip.narrow() ? 1 : kTalkChannels;
    const int64_t last = strip.channels / width - 1;
    int64_t head[kTalkLanes];
    for (int64_t c = 0; c < strip.lanes; ++c)
      head[c] = (strip.channel + std::min(c, last) * width) / R;
    for (int64_t t = 0; t < rows; ++t, row += H, out += strip.lanes)
      for (int64_t c = 0; c < strip.lanes; ++c)
        out[c] = widen(row[head[c]]) * scale;
  }

  const TalkShape& shape_;
  const O* left_;
  const O* right_;
  void (*windows_)(
      const TalkDistances<A>&,
      const TalkPlaces&,
      const TalkWindows<A>&);
  Scratch<A> to_left_;
  Scratch<A> to_right_;
  WindowArrays<A> arrays_;
};

/// Rows of a tile: windows of neighbours reach into it, so that longer ones
/// waste less.
inline constexpr int64_t kTalkRows = 256;

/// Elements from a strip of rows [first, first + rows) to the one that is
/// worked on next.
inline int64_t
next_strip(const TalkShape& shape, const TalkStrip& strip, int64_t rows) {
  const int64_t end = strip.channel + strip.channels;
  return end < shape.channels ? strip.channels
                              : rows * shape.channels - strip.channel;
}

/// How far the windows of these offsets [B, T, H] reach: offsets of models lie
/// in [0, 1], others may reach further or to the other side.
template <class O, class A = AccumulatorOf<O>>
TalkReach talk_reach(
    const TalkShape& shape,
    const O* left,
    const O* right,
    const Execution& run) {
  const int64_t count = shape.steps * shape.heads;
  std::vector<TalkReach> reaches(static_cast<size_t>(shape.batch));
  const auto tokens = [&](A most, int64_t scale) {
    const A distance = std::ceil(std::max<A>(0, most * static_cast<A>(scale)));
    return static_cast<int64_t>(
        std::min(distance, static_cast<A>(shape.steps)));
  };
  run.parallel_for(
      shape.batch,
      grain_for(count / 8),
      [&](int64_t b, int64_t end) {
        const auto extremes = talk_ops<O, A>(run.isa).extremes;
        for (; b < end; ++b) {
          const auto to_left = extremes(left + b * count, count);
          const auto to_right = right == nullptr
              ? TalkExtremes<A>{}
              : extremes(right + b * count, count);
          reaches[static_cast<size_t>(b)] = {
              .left = std::max(
                  tokens(to_left.most, shape.max_left),
                  tokens(-to_right.least, shape.max_right)),
              .right = 1 +
                  std::max(tokens(to_right.most, shape.max_right),
                           tokens(-to_left.least, shape.max_left))};
        }
      });
  TalkReach reach;
  for (const TalkReach& r : reaches)
    reach = {
        .left = std::max(reach.left, r.left),
        .right = std::max(reach.right, r.right)};
  return reach;
}

}  // namespace seqconv::kernels
