#pragma once

#include "kernels/cuda/common/host_device.h"

/// Windows of TaLK.
namespace seqconv::internal::kernels::cuda {

/// The window of a position: whole rows [begin, end), and shares of the row
/// before and the row after. An edge on a whole position has no share. begin
/// may exceed end (negative offsets): the rows between count negatively.
struct alignas(16) TalkWindow {
  int begin;
  int end;
  float left;
  float right;

  SEQCONV_HD int left_row() const { return begin - (left > 0 ? 1 : 0); }
  SEQCONV_HD int right_row() const { return end - 1 + (right > 0 ? 1 : 0); }
};

/// Rows [begin, end) that windows touch.
struct TalkSpan {
  int begin = INT32_MAX;
  int end = INT32_MIN;

  SEQCONV_HD void add(int from, int to) {
    begin = min(begin, from);
    end = max(end, to);
  }
  SEQCONV_HD void add(const TalkWindow& w) {
    const int left = w.left_row(), right = w.right_row();
    add(min(min(left, right), min(w.begin, w.end)), max(max(left, right) + 1, max(w.begin, w.end)));
  }
};

/// A distance clamped to [-back, forth] (edges beyond the sequence move to
/// its ends) as whole steps and a share in [0, 1); a NaN stays one.
SEQCONV_HD void split_distance(float distance, int back, int forth, int& whole, float& share) {
  whole = 0;
  share = distance;
  if (distance != distance)
    return;
  share = 0;
  // Whole numbers are compared: as floats, ends beyond 2^24 are rounded.
  constexpr float kFurthest = 2147483520;  // the largest float below 2^31
  const float near = min(max(distance, -kFurthest), kFurthest);
  whole = static_cast<int>(near);
  if (static_cast<float>(whole) > near)
    --whole;
  if (whole >= forth)
    whole = forth;
  else if (whole < -back)
    whole = -back;
  else
    share = near - static_cast<float>(whole);
}

/// The window of position t of `valid` whose edges are so far from t.
SEQCONV_HD TalkWindow talk_window(int t, int valid, float to_left, float to_right) {
  const int ahead = valid - 1 - t;
  int left = 0, right = 0;
  TalkWindow window;
  split_distance(to_left, ahead, t, left, window.left);
  split_distance(to_right, t, ahead, right, window.right);
  window.begin = t - left;
  window.end = t + right + 1;
  return window;
}

}  // namespace seqconv::internal::kernels::cuda
