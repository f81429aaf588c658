#pragma once

#include <vector>

#include "kernels/tile_ops.h"
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
    rows_.reserve(4 * n);
    parts_.reserve(2 * n);
  }
  TalkWindows<A> get() {
    return {
        rows_.data(),
        rows_.data() + entries_,
        rows_.data() + 2 * entries_,
        rows_.data() + 3 * entries_,
        parts_.data(),
        parts_.data() + entries_};
  }

 private:
  int64_t entries_ = 0;
  Scratch<int32_t> rows_;
  Scratch<A> parts_;
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
        count_(part_ == 0 ? 0 : channels_ / part_ * of_part_) {}

  int64_t count() const { return count_; }
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
  int64_t count_;
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

  /// Positions [first, first + rows) of a strip, rows counted from `origin`;
  /// returns the rows that they touch.
  TalkRange make(
      const TalkStrip& strip,
      int64_t first,
      int64_t rows,
      int64_t valid,
      int64_t origin) {
    const int64_t lanes = strip.lanes ? kTalkLanes : 1, count = rows * lanes;
    to_left_.reserve(count);
    to_right_.reserve(count);
    arrays_.reserve(count);
    distances(strip, first, rows, left_, shape_.max_left, to_left_.data());
    if (right_ != nullptr)
      distances(strip, first, rows, right_, shape_.max_right, to_right_.data());
    return windows_(
        {.left = to_left_.data(),
         .right = right_ == nullptr ? nullptr : to_right_.data(),
         .first = first,
         .lanes = lanes,
         .count = count,
         .valid = valid,
         .origin = origin},
        arrays_.get());
  }
  TalkWindows<A> get() { return arrays_.get(); }

 private:
  static A widen(O value) {
    if constexpr (std::is_same_v<O, BFloat16>)
      return to_float(value);
    else
      return value;
  }

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
  TalkRange (*windows_)(const TalkDistances<A>&, const TalkWindows<A>&);
  Scratch<A> to_left_;
  Scratch<A> to_right_;
  WindowArrays<A> arrays_;
};

/// Rows of a tile: windows of neighbours reach into it, so that longer ones
/// waste less.
inline constexpr int64_t kTalkRows = 128;

}  // namespace seqconv::kernels
