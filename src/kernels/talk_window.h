#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/tile_ops.h"

namespace seqconv::kernels {

/// A distance of at least zero or so, split into whole steps and a rest.
template <class D>
struct Distance {
  int64_t whole = 0;  ///< floor
  D rest = 0;         ///< in [0, 1); NaN when the distance is
};

/// Clamps a distance to [-back, forth] (positions outside the sequence are
/// moved to its ends, where the rest is zero) and splits it.
template <class D>
Distance<D> split_distance(D distance, int64_t back, int64_t forth) {
  if (distance != distance)
    return {0, distance};
  if (distance >= static_cast<D>(forth))
    return {forth, 0};
  if (distance <= static_cast<D>(-back))
    return {-back, 0};
  int64_t whole = static_cast<int64_t>(distance);
  if (static_cast<D>(whole) > distance)
    --whole;
  return {whole, distance - static_cast<D>(whole)};
}

/// The window of position t of a sequence of `valid` tokens, in positions of
/// the sequence. Distances to the borders, not positions, are what is rounded.
/// Out of the rule p = t - distance: floor(p) = t - whole - (rest > 0), ceil(p)
/// = t - whole, and ceil(p) - p = rest.
template <class A, class D>
TileWindow<A> talk_window(int64_t t, int64_t valid, D to_left, D to_right) {
  const int64_t ahead = valid - 1 - t;
  const Distance<D> left = split_distance(to_left, ahead, t);
  const Distance<D> right = split_distance(to_right, t, ahead);
  return {
      .begin = t - left.whole,
      .end = t + right.whole + 1,
      .left = t - left.whole - (left.rest > 0 ? 1 : 0),
      .right = t + right.whole + (right.rest > 0 ? 1 : 0),
      .left_weight = static_cast<A>(left.rest),
      .right_weight = static_cast<A>(right.rest)};
}

/// Rows [begin, end) that some windows touch.
template <class A>
struct RowSpan {
  int64_t begin;
  int64_t end;

  explicit RowSpan(const TileWindow<A>& w)
      : begin(std::min(w.left, w.begin)), end(std::max(w.right + 1, w.end)) {
    begin = std::min(begin, w.end);
    end = std::max(end, w.begin);
  }
  void add(const TileWindow<A>& w) {
    const RowSpan other(w);
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

/// Rows of a tile of TaLK, forward and backward.
inline constexpr int64_t kTalkRows = 64;

/// The windows of all heads of a batch.
template <class O, class A = AccumulatorOf<O>>
class Windows {
 public:
  Windows(
      int64_t steps,
      int64_t heads,
      int64_t max_left,
      int64_t max_right,
      const O* left,
      const O* right)
      : steps_(steps),
        heads_(heads),
        max_left_(static_cast<A>(max_left)),
        max_right_(static_cast<A>(max_right)),
        left_(left),
        right_(right) {}

  /// Window of position t of head h of sequence b, of `valid` tokens.
  TileWindow<A> at(int64_t b, int64_t h, int64_t t, int64_t valid) const {
    const int64_t i = (b * steps_ + t) * heads_ + h;
    const A right = right_ == nullptr ? A(0) : widen(right_[i]) * max_right_;
    return talk_window<A>(t, valid, widen(left_[i]) * max_left_, right);
  }

  /// The same in a causal stream, where row t of the offsets belongs to input
  /// number `now`, the last one so far.
  TileWindow<A> in_stream(int64_t b, int64_t h, int64_t t, int64_t now) const {
    const int64_t i = (b * steps_ + t) * heads_ + h;
    return talk_window<A>(now, now + 1, widen(left_[i]) * max_left_, A(0));
  }

 private:
  static A widen(O value) {
    if constexpr (std::is_same_v<O, BFloat16>)
      return to_float(value);
    else
      return value;
  }

  int64_t steps_;
  int64_t heads_;
  A max_left_;
  A max_right_;
  const O* left_;
  const O* right_;
};

/// Makes row `origin` of the sequence row 0.
template <class A>
void shift_windows(std::vector<TileWindow<A>>& windows, int64_t origin) {
  for (TileWindow<A>& w : windows) {
    w.begin -= origin;
    w.end -= origin;
    w.left -= origin;
    w.right -= origin;
  }
}

/// Fills `windows` with positions [first, first + rows), in rows of the span of
/// the sequence that they touch; returns that span.
template <class O, class A = AccumulatorOf<O>>
RowSpan<A> tile_windows(
    const Windows<O>& source,
    int64_t b,
    int64_t h,
    int64_t first,
    int64_t rows,
    int64_t valid,
    std::vector<TileWindow<A>>& windows) {
  windows.clear();
  windows.push_back(source.at(b, h, first, valid));
  RowSpan<A> span(windows.front());
  for (int64_t t = first + 1; t < first + rows; ++t) {
    windows.push_back(source.at(b, h, t, valid));
    span.add(windows.back());
  }
  shift_windows(windows, span.begin);
  return span;
}

}  // namespace seqconv::kernels
