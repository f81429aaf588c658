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

/// How far windows of `count` offsets reach: those of models lie in [0, 1],
/// others may reach further or to the other side.
template <class O, class A>
TalkReach reach_of(
    const TalkShape& shape,
    const O* left,
    const O* right,
    int64_t count,
    Isa isa) {
  const auto extremes = talk_ops<O, A>(isa).extremes;
  const auto to_left = extremes(left, count);
  const auto to_right =
      right == nullptr ? TalkExtremes<A>{} : extremes(right, count);
  const auto tokens = [&](A most, int64_t scale) {
    const A distance = std::ceil(std::max<A>(0, most * static_cast<A>(scale)));
    return static_cast<int64_t>(
        std::min(distance, static_cast<A>(shape.steps)));
  };
  return {
      .left = std::max(
          tokens(to_left.most, shape.max_left),
          tokens(-to_right.least, shape.max_right)),
      .right = 1 +
          std::max(tokens(to_right.most, shape.max_right),
                   tokens(-to_left.least, shape.max_left))};
}

/// Makes windows from offsets [B, T, H] of the type O. Distances to the
/// borders, not positions, are what is rounded.
template <class O, class A = AccumulatorOf<O>>
class WindowMaker {
 public:
  WindowMaker(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape),
        left_(left),
        right_(right),
        isa_(isa),
        ops_(talk_ops<O, A>(isa)) {}

  /// How far windows of all heads reach.
  TalkReach reach(const TalkBlock& block) {
    if (reach_block_ != block) {
      const int64_t at = first_offset(block);
      reach_ = reach_of<O, A>(
          shape_,
          left_ + at,
          right_ == nullptr ? nullptr : right_ + at,
          block.rows.count * shape_.heads,
          isa_);
      reach_block_ = block;
    }
    return reach_;
  }

  /// Windows of some positions of a strip; with `inputs` also the positions of
  /// their fractions. Distances of all heads are made at once, and windows of
  /// some if there are few positions: they are kept for the strips beside this
  /// one.
  const TalkWindow<A>* make(
      const TalkStrip& strip,
      const TalkRows& rows,
      const TalkPlaces& places,
      bool inputs = false) {
    const TalkBlock block = {strip.batch, rows};
    if (strip.narrow()) {
      made_ = {};
      make_lane_distances(strip, block);
      return make_windows({block, 0, places, inputs}, kTalkLanes, 1);
    }
    const int64_t pitch = pitch_of(rows), head = head_of(shape_, strip.channel);
    const int64_t together =
        std::max<int64_t>(1, kTalkRows / pitch / strip.lanes) * strip.lanes;
    const int64_t first = head / together * together;
    make_distances(block);
    const Made wanted = {block, first, places, inputs};
    if (made_ != wanted)
      windows_ =
          make_windows(wanted, 1, std::min(together, shape_.heads - first));
    made_ = wanted;
    return windows_ + (head - first) * pitch;
  }

  /// TalkTile::second.
  int64_t second(const TalkRows& rows) const {
    return head_of(shape_, kTalkChannels) * pitch_of(rows);
  }

 private:
  /// What windows were made of.
  struct Made {
    TalkBlock block;
    int64_t head = 0;  ///< the first one
    TalkPlaces places;
    bool inputs = false;

    bool operator==(const Made&) const = default;
  };

  /// Entries from one head to the next: whole vectors are read and written.
  static int64_t pitch_of(const TalkRows& rows) {
    return ceil_div(rows.count, kTalkLanes) * kTalkLanes;
  }

  int64_t first_offset(const TalkBlock& block) const {
    return (block.batch * shape_.steps + block.rows.first) * shape_.heads;
  }

  /// Of all heads, unless they are those made last.
  void make_distances(const TalkBlock& block) {
    if (made_.block == block)
      return;
    const int64_t H = shape_.heads, pitch = pitch_of(block.rows);
    for_offsets(block, H * pitch, [&](const O* from, A tokens, A* out) {
      ops_.distances({from, block.rows.count, H}, tokens, pitch, out);
    });
  }

  /// A distance for every channel.
  void make_lane_distances(const TalkStrip& strip, const TalkBlock& block) {
    int64_t head[kTalkLanes];
    for (int64_t c = 0; c < kTalkLanes; ++c)
      head[c] =
          head_of(shape_, strip.channel + std::min(c, strip.channels - 1));
    const int64_t rows = block.rows.count;
    for_offsets(block, rows * kTalkLanes, [&](const O* row, A tokens, A* out) {
      for (int64_t t = 0; t < rows; ++t, row += shape_.heads)
        for (int64_t c = 0; c < kTalkLanes; ++c)
          *out++ = widen(row[head[c]]) * tokens;
    });
  }

  /// make(offsets from the first row on, tokens where one is 1, distances).
  template <class Make>
  void for_offsets(const TalkBlock& block, int64_t count, const Make& make) {
    const int64_t at = first_offset(block);
    to_left_.reserve(count);
    make(left_ + at, static_cast<A>(shape_.max_left), to_left_.data());
    if (right_ == nullptr)
      return;
    to_right_.reserve(count);
    make(right_ + at, static_cast<A>(shape_.max_right), to_right_.data());
  }

  /// From distances, `lanes` for each position, of some heads.
  const TalkWindow<A>*
  make_windows(const Made& wanted, int64_t lanes, int64_t heads) {
    const TalkRows& rows = wanted.block.rows;
    const int64_t pitch = pitch_of(rows), at = wanted.head * pitch;
    // Whole vectors are written.
    array_.reserve(heads * lanes * pitch + kTalkLanes);
    ops_.windows(
        {.left = to_left_.data() + at,
         .right = right_ == nullptr ? nullptr : to_right_.data() + at,
         .first = rows.first,
         .lanes = lanes,
         .count = rows.count * lanes,
         .heads = heads,
         .pitch = pitch,
         .valid = rows.valid,
         .inputs = wanted.inputs},
        wanted.places,
        array_.data());
    return array_.data();
  }

  const TalkShape& shape_;
  const O* left_;
  const O* right_;
  const Isa isa_;
  const TalkOps<O, A>& ops_;
  Scratch<A> to_left_;
  Scratch<A> to_right_;
  Scratch<TalkWindow<A>> array_;
  const TalkWindow<A>* windows_ = nullptr;
  Made made_;
  TalkBlock reach_block_;
  TalkReach reach_;
};

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
