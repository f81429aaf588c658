#pragma once

#include <algorithm>

#include "kernels/talk/talk_distances.h"

namespace seqconv::kernels {

/// The edges of the backward pass.
template <class O, class A = AccumulatorOf<O>>
class EdgeMaker {
 public:
  EdgeMaker(const TalkShape& shape, const O* left, const O* right, Isa isa)
      : shape_(shape),
        ops_(talk_kernels<O, A>(isa)),
        distances_(shape, left, right, isa) {}

  /// Those of some windows of a strip, kept for the strips of the same head.
  /// Their rows are counted from the range's first on and clipped to it.
  TalkEdges<A>
  make(const TalkStrip& strip, const TalkRows& rows, const TalkRange& range) {
    const Made wanted = {
        {strip.batch, rows},
        strip.narrow() ? -1 : head_of(shape_, strip.channel),
        range};
    if (made_ == wanted && !strip.narrow())
      return edges();
    const TalkDistances<A> distances = distances_.make(strip, rows);
    // Whole vectors are written.
    const int64_t count = 2 * (distances.pitch + kTalkLanes);
    rows_.reserve(count);
    parts_.reserve(count);
    finite_ = ops_.edges(distances, range, edges());
    made_ = wanted;
    listed_ = false;
    return edges();
  }
  /// Whether no edge's distance is NaN.
  bool finite() const { return finite_; }

  /// Lists of the edges made last, which are not of a narrow strip, in order:
  /// the first one at each row, and the one behind each, or -1.
  const int32_t* first() {
    list();
    return first_.data();
  }
  const int32_t* next() {
    list();
    return next_.data();
  }

 private:
  /// What edges were made of.
  struct Made {
    TalkBlock block;
    int64_t head = -1;
    TalkRange range;

    bool operator==(const Made&) const = default;
  };

  TalkEdges<A> edges() { return {rows_.data(), parts_.data()}; }

  void list() {
    if (listed_)
      return;
    first_.reserve(made_.range.count);
    next_.reserve(2 * made_.block.rows.count);
    int32_t* const first = first_.data();
    int32_t* const next = next_.data();
    const int32_t* const rows = rows_.data();
    std::fill_n(first, made_.range.count, -1);
    for (auto edge = static_cast<int32_t>(2 * made_.block.rows.count);
         --edge >= 0;) {
      next[edge] = first[rows[edge]];
      first[rows[edge]] = edge;
    }
    listed_ = true;
  }

  const TalkShape& shape_;
  const TalkKernels<O, A>& ops_;
  DistanceMaker<O, A> distances_;
  Scratch<int32_t> rows_;
  Scratch<A> parts_;
  Scratch<int32_t> first_;
  Scratch<int32_t> next_;
  Made made_;
  bool finite_ = true;
  bool listed_ = false;
};

}  // namespace seqconv::kernels
