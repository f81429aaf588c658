#pragma once

#include "kernels/cuda/host_device.h"

/// Windows of TaLK.
namespace seqconv::kernels::cuda {

inline constexpr int kTalkTile = 64;     ///< positions of a block
inline constexpr int kTalkSegment = 16;  ///< rows that one thread scans

/// The segment of row r >= 0: unsigned, or a shift would need corrections.
SEQCONV_HD int segment_of(int r) {
  return static_cast<int>(static_cast<unsigned>(r) / kTalkSegment);
}

/// The window of a position: whole rows [begin, end), and shares of the row
/// before and the row after. An edge on a whole position has no share. begin
/// may exceed end (negative offsets): the rows between count negatively.
template <class A>
struct alignas(16) TalkWindow {
  int begin;
  int end;
  A left;
  A right;

  SEQCONV_HD int left_row() const { return begin - (left > 0 ? 1 : 0); }
  SEQCONV_HD int right_row() const { return end - 1 + (right > 0 ? 1 : 0); }
};

constexpr int64_t window_bytes(int sum_bytes) {
  return round_up<int64_t>(2 * sizeof(int) + 2 * sum_bytes, 16);
}
static_assert(window_bytes(4) == sizeof(TalkWindow<float>));
static_assert(window_bytes(8) == sizeof(TalkWindow<double>));

/// Rows [begin, end) that windows touch.
struct TalkSpan {
  int begin = INT32_MAX;
  int end = INT32_MIN;

  SEQCONV_HD void add(int from, int to) {
    begin = min(begin, from);
    end = max(end, to);
  }
  template <class A>
  SEQCONV_HD void add(const TalkWindow<A>& w) {
    const int left = w.left_row(), right = w.right_row();
    add(min(min(left, right), min(w.begin, w.end)),
        max(max(left, right) + 1, max(w.begin, w.end)));
  }
};

/// A distance clamped to [-back, forth] (edges beyond the sequence move to
/// its ends) as whole steps and a share in [0, 1); a NaN stays one.
template <class A>
SEQCONV_HD void
split_distance(A distance, int back, int forth, int& whole, A& share) {
  whole = 0;
  share = distance;
  if (distance != distance)
    return;
  share = A(0);
  // Whole numbers are compared: as numbers of A, ends beyond 2^24 are rounded.
  constexpr A kFurthest = 2147483520;  // the largest float below 2^31
  const A near = min(max(distance, -kFurthest), kFurthest);
  whole = static_cast<int>(near);
  if (static_cast<A>(whole) > near)
    --whole;
  if (whole >= forth)
    whole = forth;
  else if (whole < -back)
    whole = -back;
  else
    share = near - static_cast<A>(whole);
}

/// The window of position t of `valid` whose edges are so far from t.
template <class A>
SEQCONV_HD TalkWindow<A> talk_window(int t, int valid, A to_left, A to_right) {
  const int ahead = valid - 1 - t;
  int left = 0, right = 0;
  TalkWindow<A> window;
  split_distance(to_left, ahead, t, left, window.left);
  split_distance(to_right, t, ahead, right, window.right);
  window.begin = t - left;
  window.end = t + right + 1;
  return window;
}

}  // namespace seqconv::kernels::cuda
