#pragma once

#include <algorithm>

#include "kernels/talk/talk_tiles.h"

namespace seqconv::kernels {

/// Makes distances to the edges of windows from offsets [B, T, H] of the type
/// O. Distances, not positions, are what is rounded.
template <class O, class A = AccumulatorOf<O>>
class DistanceMaker {
 public:
  DistanceMaker(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape),
        left_(left),
        right_(right),
        ops_(talk_kernels<O, A>(isa)) {}

  /// Those of some positions of a strip. Of all heads at once, which are kept
  /// for the strips beside this one and follow each other.
  TalkDistances<A> make(const TalkStrip& strip, const TalkRows& rows) {
    const TalkBlock block = {strip.batch, rows};
    int64_t at = 0, lanes = 1;
    if (strip.narrow()) {
      lanes = kTalkLanes;
      make_lanes(strip, block);
    } else {
      make_heads(block);
      at = head_of(shape_, strip.channel) * pitch_of(rows);
    }
    return {
        .left = to_left_.data() + at,
        .right = right_ == nullptr ? nullptr : to_right_.data() + at,
        .first = rows.first,
        .lanes = lanes,
        .count = rows.count * lanes,
        .pitch = pitch_of(rows) * lanes,
        .valid = rows.valid};
  }

  /// Entries from one head to the next: whole vectors are read and written.
  static int64_t pitch_of(const TalkRows& rows) {
    return ceil_div(rows.count, kTalkLanes) * kTalkLanes;
  }

 private:
  int64_t first_offset(const TalkBlock& block) const {
    return (block.batch * shape_.steps + block.rows.first) * shape_.heads;
  }

  /// Of all heads, unless they are those made last.
  void make_heads(const TalkBlock& block) {
    if (made_ == block)
      return;
    const int64_t H = shape_.heads, pitch = pitch_of(block.rows);
    for_offsets(block, H * pitch, [&](const O* from, A tokens, A* out) {
      ops_.distances({from, block.rows.count, H}, tokens, pitch, out);
    });
    made_ = block;
  }

  /// A distance for every channel.
  void make_lanes(const TalkStrip& strip, const TalkBlock& block) {
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
    made_ = {};
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

  const TalkShape& shape_;
  const O* left_;
  const O* right_;
  const TalkKernels<O, A>& ops_;
  Scratch<A> to_left_;
  Scratch<A> to_right_;
  TalkBlock made_;
};

}  // namespace seqconv::kernels
