#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/talk_tile_ops.h"
#include "kernels/tiles.h"
#include "seqconv/kernels/talk.h"

/// Windows of TaLK for tiles of one head, or of kTalkLanes channels whose heads
/// are narrower than a vector.
namespace seqconv::kernels {

/// Arrays of TalkWindows for a number of entries.
template <class A>
class WindowArrays {
 public:
  void reserve(int64_t entries) {
    const int64_t n = ceil_div(entries + kTalkLanes, kTalkLanes) * kTalkLanes;
    if (n <= entries_)
      return;
    entries_ = n;
    numbers_.reserve(TalkWindows<A>::kNumbers * n);
    fractions_.reserve(TalkWindows<A>::kFractions * n);
  }
  TalkWindows<A> get(bool inputs) {
    return {numbers_.data(), fractions_.data(), entries_, inputs};
  }

 private:
  int64_t entries_ = 0;
  Scratch<int32_t> numbers_;
  Scratch<A> fractions_;
};

/// Channels [channel, channel + channels) of sequence `batch`, one window a
/// position, or with `lanes` one for every channel.
struct TalkStrip {
  int64_t batch = 0;
  int64_t channel = 0;
  int64_t channels = 0;
  bool lanes = false;
};

/// How channels are cut into strips.
class TalkStrips {
 public:
  explicit TalkStrips(const TalkShape& shape)
      : channels_(shape.channels),
        lanes_(shape.head_channels() < kTalkLanes),
        part_(lanes_ ? channels_ : shape.head_channels()),
        width_(lanes_ ? kTalkLanes : kTalkChannels),
        of_part_(ceil_div(std::max<int64_t>(part_, 1), width_)),
        parts_(part_ == 0 ? 0 : channels_ / part_) {}

  int64_t parts() const { return parts_; }
  int64_t of_part() const { return of_part_; }
  int64_t count() const { return parts_ * of_part_; }
  bool lanes() const { return lanes_; }
  TalkStrip get(int64_t batch, int64_t strip) const {
    const int64_t first = strip % of_part_ * width_;
    return {
        .batch = batch,
        .channel = strip / of_part_ * part_ + first,
        .channels = std::min(width_, part_ - first),
        .lanes = lanes_};
  }

 private:
  int64_t channels_;
  bool lanes_;
  int64_t part_;     // channels whose strips are alike: a head, or all
  int64_t width_;    // of a strip
  int64_t of_part_;  // strips of a part
  int64_t parts_;
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
    const int64_t lanes = strip.lanes ? kTalkLanes : 1, count = rows * lanes;
    to_left_.reserve(count);
    to_right_.reserve(count);
    arrays_.reserve(count);
    distances(strip, first, rows, left_, shape_.max_left, to_left_.data());
    if (right_ != nullptr)
      distances(strip, first, rows, right_, shape_.max_right, to_right_.data());
    const TalkWindows<A> out = arrays_.get(inputs);
    windows_(
        {.left = to_left_.data(),
         .right = right_ == nullptr ? nullptr : to_right_.data(),
         .first = first,
         .lanes = lanes,
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
    if (!strip.lanes) {
      const int64_t head = strip.channel / R;
      for (int64_t t = 0; t < rows; ++t, row += H)
        out[t] = widen(row[head]) * scale;
      return;
    }
    for (int64_t t = 0; t < rows; ++t, row += H, out += kTalkLanes)
      for (int64_t c = 0; c < kTalkLanes; ++c) {
        const int64_t lane = std::min(c, strip.channels - 1);
        out[c] = widen(row[(strip.channel + lane) / R]) * scale;
      }
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
