#include "kernels/cuda_talk_support.h"

/// What the results of the device's TaLK kernels may depend on: not on vectors,
/// neighbours or what follows; and where a NaN may show.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

/// The vectors that a kernel is run with.
template <class S, int kBytes>
int vector_of(int64_t head_channels, const void* x, const void* y) {
  int chosen = 0;
  with_vector<S, kBytes>(head_channels, {x, y}, [&](auto v) { chosen = v; });
  return chosen;
}

TEST(CudaTalkOnHost, VectorsAreAsLongAsHeadsAndAddressesAllow) {
  alignas(16) const char at[32] = {};
  EXPECT_EQ((vector_of<BFloat16, 16>(64, at, at)), 8);
  EXPECT_EQ((vector_of<BFloat16, 16>(60, at, at)), 4);
  EXPECT_EQ((vector_of<Float16, 16>(64, at, at + 8)), 4);
  EXPECT_EQ((vector_of<Float16, 16>(64, at + 4, at)), 2);
  EXPECT_EQ((vector_of<Float16, 16>(64, at + 2, at)), 1);
  EXPECT_EQ((vector_of<BFloat16, 8>(64, at, at)), 4);
  EXPECT_EQ((vector_of<float, 16>(8, at, at)), 4);
  EXPECT_EQ((vector_of<float, 16>(6, at, at)), 2);
  EXPECT_EQ((vector_of<float, 16>(7, at, at)), 1);
}

template <class S>
void expect_same_bits_wherever(const TalkCase& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const auto values = TalkValues::inexact(c);
  const auto want = run_on_host<S, S>(c, values, /*backwards=*/false);
  for (const size_t shift : {1, 2, 4}) {
    SCOPED_TRACE(shift);
    const auto got = run_on_host<S, S>(c, values, false, shift);
    EXPECT_TRUE(same_bits(got.y, want.y));
    EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
    EXPECT_LE(error_of(got.grad_left, widened(want.grad_left)), bound<S>());
    EXPECT_LE(error_of(got.grad_right, widened(want.grad_right)), bound<S>());
  }
}

TEST(CudaTalkOnHost, TensorsMayStartAnywhere) {
  // With fewer channels to a thread where addresses ask for it: the same sums.
  for (const int64_t R : {8, 16, 64, 100})
    for (const double largest : {1.0, 9.0}) {
      const TalkCase c = {
          .B = 1, .T = 150, .R = R, .max_left = 21, .max_right = 7, .largest = largest};
      expect_same_bits_wherever<BFloat16>(c);
      expect_same_bits_wherever<Float16>(c);
      expect_same_bits_wherever<float>(c);
    }
}

TEST(CudaTalkOnHost, WhatFollowsLeavesNoTrace) {
  const TalkCase c = {.B = 1, .T = 200, .H = 3, .R = 8, .max_left = 40, .causal = true};
  const auto values = TalkValues::inexact(c);
  const auto want = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (const int64_t T : {5, 64, 79, 131}) {
    TalkCase shorter = c;
    shorter.T = T;
    TalkValues first = values;
    for (auto* const list : {&first.x, &first.grad_y, &first.left, &first.right})
      list->resize(list->size() / 200 * static_cast<size_t>(T));
    const auto got = run_on_host<float, float>(shorter, first, /*backwards=*/false);
    auto same = want.y;
    same.resize(got.y.size());
    EXPECT_TRUE(same_bits(got.y, same)) << T;
  }
}

/// One window far longer than the others moves the first row that a tile looks
/// at: the sums of the other windows must not notice.
TEST(CudaTalkOnHost, WindowsDoNotNoticeTheirNeighbours) {
  for (const int64_t R : {3, 4, 8, 64}) {
    const TalkCase c = {.B = 1, .T = 200, .H = 1, .R = R, .max_left = 60, .causal = true};
    auto values = TalkValues::inexact(c);
    for (double& left : values.left)
      left /= 16;
    const auto want = run_on_host<float, float>(c, values, false);
    values.left[150] = 1;
    const auto got = run_on_host<float, float>(c, values, false);
    for (int64_t i = 0; i < c.T * R; ++i)
      if (i / R != 150) {
        ASSERT_EQ(got.y[static_cast<size_t>(i)], want.y[static_cast<size_t>(i)]) << i;
      }
  }
}

template <class S>
void expect_nan_stays_in_its_segment(int64_t R) {
  SCOPED_TRACE(R);
  const TalkCase c = {.B = 1, .T = 200, .H = 1, .R = R, .max_left = 20, .max_right = 20};
  TalkValues values(c);
  const auto want = run_on_host<S, S>(c, values, /*backwards=*/false);
  const int64_t bad = 70, end = 80;  // the row, and its segment's end
  values.x[static_cast<size_t>(bad * R + R - 1)] = NAN;
  const auto got = run_on_host<S, S>(c, values, /*backwards=*/false);
  for (int64_t t = 0; t < c.T; ++t) {
    const auto at = static_cast<size_t>(t);
    const auto w = talk_window(
        static_cast<int>(t),
        200,
        static_cast<float>(values.left[at] * 20),
        static_cast<float>(values.right[at] * 20));
    for (int64_t r = 0; r < R; ++r) {
      const auto i = static_cast<size_t>(t * R + r);
      const bool looks = w.left_row() <= bad && bad <= w.right_row();
      if (looks && r == R - 1) {
        EXPECT_NE(widen(got.y[i]), widen(got.y[i])) << t;
      } else if (r < R - 1 || w.right_row() < bad || w.left_row() >= end) {
        EXPECT_EQ(widen(got.y[i]), widen(want.y[i])) << t;
      }
    }
  }
}

TEST(CudaTalkOnHost, ANanInARowShowsInItsWindowsAndItsSegmentsAlone) {
  for (const int64_t R : {1, 6, 4, 8, 64}) {
    expect_nan_stays_in_its_segment<float>(R);
    expect_nan_stays_in_its_segment<BFloat16>(R);
  }
}

template <class S>
void expect_nan_stays_near_its_window(int64_t R) {
  SCOPED_TRACE(R);
  const TalkCase c = {.B = 1, .T = 300, .H = 1, .R = R, .max_left = 20, .max_right = 20};
  TalkValues values(c);
  // Among positions that reach into the next tile, as its own window does not.
  const int64_t bad = 120;
  values.left[bad] = values.right[bad] = 0.125;
  const auto w = talk_window(120, 300, 2.5, 2.5);
  const auto want = run_on_host<S, S>(c, values, /*backwards=*/false);
  values.grad_y[static_cast<size_t>(bad * R)] = NAN;
  const auto got = run_on_host<S, S>(c, values, /*backwards=*/false);
  const int64_t end = round_up<int64_t>(w.right_row() + 1, kTalkTile);
  for (int64_t t = 0; t < c.T; ++t)
    for (int64_t r = 0; r < R; ++r) {
      const auto i = static_cast<size_t>(t * R + r);
      if (r > 0 || t < w.left_row() || t >= end) {
        EXPECT_EQ(widen(got.grad_x[i]), widen(want.grad_x[i])) << t;
      } else if (t <= w.right_row()) {
        EXPECT_NE(widen(got.grad_x[i]), widen(got.grad_x[i])) << t;
      }
    }
}

TEST(CudaTalkOnHost, ANanInAGradientShowsFromItsWindowToTheTilesEnd) {
  for (const int64_t R : {1, 6, 4, 64}) {
    expect_nan_stays_near_its_window<float>(R);
    expect_nan_stays_near_its_window<BFloat16>(R);
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
