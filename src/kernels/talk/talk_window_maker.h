#pragma once

#include <algorithm>

#include "kernels/talk/talk_distances.h"

namespace seqconv::kernels {

/// The windows of the forward pass.
template <class O, class A = AccumulatorOf<O>>
class WindowMaker {
 public:
  WindowMaker(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape),
        left_(left),
        right_(right),
        isa_(isa),
        ops_(talk_kernels<O, A>(isa)),
        distances_(shape, left, right, isa) {}

  /// How far windows of all heads reach.
  TalkReach reach(const TalkBlock& block) {
    if (reach_block_ != block) {
      const int64_t at =
          (block.batch * shape_.steps + block.rows.first) * shape_.heads;
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

  /// Windows of some positions of a strip; of some heads at once if there are
  /// few positions, which are kept for the strips beside this one.
  const TalkWindow<A>*
  make(const TalkStrip& strip, const TalkRows& rows, const TalkPlaces& places) {
    TalkDistances<A> distances = distances_.make(strip, rows);
    const TalkBlock block = {strip.batch, rows};
    const int64_t pitch = distances.pitch;
    const int64_t head = head_of(shape_, strip.channel);
    int64_t from = 0;
    Made wanted = {block, -1, places};
    if (!strip.narrow()) {
      const int64_t together =
          std::max<int64_t>(1, kTalkRows / pitch / strip.lanes) * strip.lanes;
      wanted.head = head / together * together;
      from = (head - wanted.head) * pitch;
      if (made_ == wanted)
        return windows_.data() + from;
      distances.left -= from;
      if (distances.right != nullptr)
        distances.right -= from;
      distances.heads = std::min(together, shape_.heads - wanted.head);
    }
    // Whole vectors are written.
    windows_.reserve(distances.heads * pitch + kTalkLanes);
    ops_.windows(distances, places, windows_.data());
    made_ = wanted;
    return windows_.data() + from;
  }

  /// TalkTile::second.
  int64_t second(const TalkRows& rows) const {
    return head_of(shape_, kTalkChannels) * DistanceMaker<O, A>::pitch_of(rows);
  }

 private:
  /// What windows were made of.
  struct Made {
    TalkBlock block;
    int64_t head = -1;  ///< the first one
    TalkPlaces places;

    bool operator==(const Made&) const = default;
  };

  const TalkShape& shape_;
  const O* left_;
  const O* right_;
  const Isa isa_;
  const TalkKernels<O, A>& ops_;
  DistanceMaker<O, A> distances_;
  Scratch<TalkWindow<A>> windows_;
  Made made_;
  TalkBlock reach_block_;
  TalkReach reach_;
};

}  // namespace seqconv::kernels
