#include <gtest/gtest.h>

#include "kernels/talk_test.h"

/// talk against its definition by sums over windows, in loops of doubles.
namespace seqconv::internal::kernels {
namespace {

using testing::bound;
using testing::draw;
using testing::place;
using testing::ReferenceTalk;
using testing::relative_error;
using testing::stored;
using testing::TalkCase;

class TalkKernels : public testing::TalkTest {};

INSTANTIATE_TEST_SUITE_P(
    Isas, TalkKernels, ::testing::ValuesIn(supported_isas()), testing::isa_name);

TEST_P(TalkKernels, EqualSumsOverWindowsOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kWidths[] = {
      {6, 2},
      {5, 5},
      {35, 7},
      {32, 2},
      {60, 1},
      {128, 2},
      {130, 1},
      {40, 40},
      {34, 17},
      {40, 5},
      {36, 3}};
  size_t turn = 0;
  for (const int64_t T : {1, 2, 31, 129, 300, 600})
    for (const int64_t reach : {0, 1, 3, 15, 31, 63}) {
      const auto [C, H] = kWidths[turn++ % std::size(kWidths)];
      expect_plain_everywhere({.shape = {2, T, C, H, reach, turn % 2 == 0 ? reach : 0}});
    }
}

TEST_P(TalkKernels, EqualSumsOverWindowsThatReachFurtherThanExpected) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {12, 4}, {24, 3}})
    expect_plain_everywhere({.shape = {3, 300, C, H, 31, 15}, .lengths = {300, 0, 140}, .max = 2});
}

TEST_P(TalkKernels, EqualSumsOverWindowsThatReachToOneSideOrTheOther) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {12, 4}, {24, 3}})
    for (const auto& [left, right] :
         {std::pair<int64_t, int64_t>{0, 5}, {5, 0}, {0, 63}, {63, 0}, {1, 1}})
      for (const int64_t T : {257, 530})
        expect_plain_everywhere({.shape = {2, T, C, H, left, right}, .lengths = {T, 256}});
}

// A window that ends before it begins holds what is between them negatively.
TEST_P(TalkKernels, EqualSumsOverWindowsThatEndBeforeTheyBegin) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {12, 4}, {24, 3}})
    for (const int64_t right : {0, 9})
      expect_plain_everywhere({.shape = {2, 530, C, H, 9, right}, .min = -1});
}

// Windows of some heads are made together, their offsets four heads at a time.
TEST_P(TalkKernels, EqualSumsOverWindowsOfManyHeads) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{112, 7}, {272, 17}})
    for (const int64_t T : {3, 31, 50, 300})
      expect_plain_everywhere({.shape = {2, T, C, H, 5, 9}, .lengths = {T, T / 2}});
}

// Such rows have two windows a tile, with some types and however far these
// reach.
TEST_P(TalkKernels, EqualSumsOverWindowsInRowsOfWholePages) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{1024, 16}, {1024, 8}, {2048, 16}})
    for (const int64_t T : {1, 40, 300})
      expect_plain_everywhere({.shape = {2, T, C, H, 7, 5}, .lengths = {T, T / 2}});
  expect_plain_everywhere({.shape = {1, 200, 1024, 16, 70, 5}});
}

// Heads of 72 channels are no whole lines: they are prefetched, but not stored
// past the caches.
TEST_P(TalkKernels, EqualSumsOverWindowsWhereNothingStaysInTheCache) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{128, 2}, {144, 2}, {1024, 16}, {64, 16}})
    expect_plain_everywhere(
        {.shape = {2, 300, C, H, 15, 31}, .lengths = {300, 140}, .streams_from = 1});
}

// With such caches float or BFloat16 are prefetched, but not stored past them.
TEST_P(TalkKernels, EqualSumsOverWindowsWhereLittleStaysInTheCache) {
  for (const int64_t cache : {450'000, 900'000})
    expect_plain_everywhere({.shape = {2, 300, 128, 2, 15, 31}, .streams_from = cache});
}

TEST_P(TalkKernels, ANotANumberReachesItsWindowsOnly) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{16, 1}, {16, 16}, {16, 4}, {1024, 16}}) {
    const TalkShape s{1, 100, C, H, 3, 3};
    const size_t count = place(100 * C);
    std::vector<float> x(count, 1.0f), y(count), grad(count);
    const std::vector<float> half(place(100 * H), 0.5f);
    std::vector<float> left(half.size()), right(half.size());
    for (int64_t c = 0; c < C; ++c)
      x[place(40 * C + c)] = c % 2 == 0 ? NAN : INFINITY;
    const Execution run{testing::serial, GetParam()};
    talk_forward(
        TalkForward<float, float>{s, x.data(), half.data(), half.data(), nullptr, y.data()}, run);
    const std::vector<float> ones(count, 1.0f);
    talk_backward(
        TalkBackward<float, float>{
            s,
            ones.data(),
            half.data(),
            half.data(),
            nullptr,
            x.data(),
            grad.data(),
            left.data(),
            right.data()},
        run);
    for (int64_t t = 0; t < 100; ++t) {
      const bool reached = t >= 38 && t <= 42;
      for (int64_t c = 0; c < C; ++c) {
        const size_t i = place(t * C + c);
        EXPECT_EQ(std::isfinite(y[i]), !reached) << t;
        EXPECT_EQ(std::isfinite(grad[i]), !reached) << t;
      }
      EXPECT_EQ(std::isfinite(left[place(t * H)]), t != 40);
    }
  }
}

// Windows without fractions have no part of what another tile left behind.
TEST_P(TalkKernels, ANotANumberStaysInItsTile) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {16, 16}}) {
    const TalkShape s{1, 600, C, H, 3, 3};
    std::vector<float> x(place(600 * C), 1.0f), y(x.size());
    const std::vector<float> two(place(600 * H), 2.0f / 3);
    x[place(40 * C)] = NAN;
    talk_forward(
        TalkForward<float, float>{s, x.data(), two.data(), two.data(), nullptr, y.data()},
        {testing::serial, GetParam()});
    for (int64_t t = 0; t < 600; ++t)
      EXPECT_EQ(std::isnan(y[place(t * C)]), t >= 38 && t <= 42) << t;
  }
}

// Windows reach 16 rows to both sides, but those of rows 512 to 767 two: tiles
// keep fewer sums there, and as many as before in the next one.
TEST_P(TalkKernels, ANotANumberChangesNoOtherSums) {
  constexpr int64_t T = 1300, kReach = 16, kNaN = 300;
  const auto reach_at = [](int64_t t) { return t / 256 == 2 ? kReach / 8 : kReach; };
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {130, 1}, {128, 2}, {20, 4}}) {
    std::vector<float> x(place(T * C));
    for (int64_t i = 0; i < T * C; ++i)
      x[place(i)] = static_cast<float>(i * i % 17 - 8);
    std::vector<float> offsets(place(T * H));
    for (int64_t i = 0; i < T * H; ++i)
      offsets[place(i)] = static_cast<float>(reach_at(i / H)) / static_cast<float>(kReach);
    const auto forward = [&] {
      std::vector<float> y(x.size(), 7.0f);
      talk_forward(
          TalkForward<float, float>{
              {1, T, C, H, kReach, kReach},
              x.data(),
              offsets.data(),
              offsets.data(),
              nullptr,
              y.data()},
          {testing::serial, GetParam()});
      return y;
    };
    const std::vector<float> plain = forward();
    const int64_t channel = C - 3;
    x[place(kNaN * C + channel)] = NAN;
    const std::vector<float> y = forward();
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < C; ++c) {
        const size_t at = place(t * C + c);
        if (c == channel && std::abs(t - kNaN) <= reach_at(t)) {
          EXPECT_TRUE(std::isnan(y[at])) << t;
          continue;
        }
        float sum = 0;
        for (int64_t row = std::max<int64_t>(0, t - reach_at(t));
             row <= std::min(T - 1, t + reach_at(t));
             ++row)
          sum += x[place(row * C + c)];
        EXPECT_FLOAT_EQ(y[at], sum / (2 * kReach + 1)) << t << " " << c;
        EXPECT_EQ(y[at], plain[at]) << t << " " << c;
      }
  }
}

TEST_P(TalkKernels, StoresPastTheCachesWriteTheSame) {
  const TalkShape s{2, 300, 128, 2, 15, 31};
  const int64_t positions = s.batch * s.steps;
  const auto x = draw<float>(random_, positions * s.channels);
  const auto g = draw<float>(random_, positions * s.channels);
  auto offsets = draw<float>(random_, positions * s.heads);
  for (float& offset : offsets)
    offset = std::abs(offset);
  const auto both = [&](int64_t streams_from) {
    testing::Lines<float> y(x.size()), grad(x.size());
    std::vector<float> left(offsets.size()), right(offsets.size());
    const Execution run{testing::serial, GetParam(), streams_from};
    talk_forward(
        TalkForward<float, float>{s, x.data(), offsets.data(), offsets.data(), nullptr, y.data()},
        run);
    talk_backward(
        TalkBackward<float, float>{
            s,
            x.data(),
            offsets.data(),
            offsets.data(),
            nullptr,
            g.data(),
            grad.data(),
            left.data(),
            right.data()},
        run);
    std::vector<float> all(y.begin(), y.end());
    all.insert(all.end(), grad.begin(), grad.end());
    all.insert(all.end(), left.begin(), left.end());
    all.insert(all.end(), right.begin(), right.end());
    return all;
  };
  EXPECT_EQ(both(1), both(int64_t{1} << 40));
}

// The edge of window 250 is in the tile of the first 256 rows, its gradients
// in the next one too; that of window 260 the other way round.
TEST_P(TalkKernels, AnOffsetThatIsNotANumberReachesAllTilesOfItsWindow) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 1}, {16, 4}, {16, 8}, {16, 16}}) {
    const TalkShape s{1, 600, C, H, 15, 15};
    const std::vector<float> ones(place(600 * C), 1.0f);
    std::vector<float> y(ones.size()), grad(ones.size());
    std::vector<float> to_left(place(600 * H), 1.0f), to_right = to_left;
    std::vector<float> left(to_left.size()), right(to_left.size());
    to_left[place(250 * H)] = to_right[place(260 * H)] = NAN;
    const Execution run{testing::serial, GetParam()};
    talk_forward(
        TalkForward<float, float>{
            s, ones.data(), to_left.data(), to_right.data(), nullptr, y.data()},
        run);
    talk_backward(
        TalkBackward<float, float>{
            s,
            ones.data(),
            to_left.data(),
            to_right.data(),
            nullptr,
            ones.data(),
            grad.data(),
            left.data(),
            right.data()},
        run);
    for (int64_t t = 0; t < 600; ++t) {
      EXPECT_EQ(std::isnan(y[place(t * C)]), t == 250 || t == 260) << t;
      EXPECT_EQ(std::isnan(grad[place(t * C)]), t >= 245 && t < 266) << t;
    }
  }
}

TEST_P(TalkKernels, AWholeEdgeHasNoGradientWhateverLiesBeyond) {
  const TalkShape s{1, 40, 64, 1, 3, 3};
  const size_t count = place(40 * 64);
  const std::vector<float> x(count, INFINITY), ones(count, 1.0f);
  // One token, and half of one: whole edges and fractions in turns.
  std::vector<float> offsets(40, 1.0f / 3);
  for (size_t t = 1; t < offsets.size(); t += 2)
    offsets[t] = 0.5f / 3;
  std::vector<float> grad(count), left(40), right(40);
  talk_backward(
      TalkBackward<float, float>{
          s,
          x.data(),
          offsets.data(),
          offsets.data(),
          nullptr,
          ones.data(),
          grad.data(),
          left.data(),
          right.data()},
      {testing::serial, GetParam()});
  for (size_t t = 1; t < 39; ++t)
    for (const float gradient : {left[t], right[t]})
      EXPECT_EQ(gradient, t % 2 == 0 ? 0.0f : INFINITY) << t;
}

TEST_P(TalkKernels, ASequenceHasTheSameBitsWhateverOtherWindowsReach) {
  const int64_t T = 300, C = 128, H = 2;
  auto x = draw<float>(random_, 2 * T * C);
  for (float& value : x)
    value *= 1.1f;  // products that are not exact
  auto offsets = draw<float>(random_, 2 * T * H);
  for (size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = std::abs(offsets[i]) * (i < place(T * H) ? 0.1f : 1.0f);
  const auto both = [&](int64_t batch) {
    std::vector<float> y(place(batch * T * C)), grad(y.size());
    std::vector<float> left(offsets.size()), right(offsets.size());
    talk_forward(
        TalkForward<float, float>{
            {batch, T, C, H, 40, 40}, x.data(), offsets.data(), offsets.data(), nullptr, y.data()},
        {testing::serial, GetParam()});
    talk_backward(
        TalkBackward<float, float>{
            {batch, T, C, H, 40, 40},
            x.data(),
            offsets.data(),
            offsets.data(),
            nullptr,
            x.data(),
            grad.data(),
            left.data(),
            right.data()},
        {testing::serial, GetParam()});
    y.resize(place(T * C));
    y.insert(y.end(), grad.begin(), grad.begin() + T * C);
    y.insert(y.end(), left.begin(), left.begin() + T * H);
    return y;
  };
  EXPECT_EQ(both(1), both(2));
}

TEST_P(TalkKernels, AGradientThatIsNotWantedDoesNotChangeTheOthers) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{128, 2}, {24, 3}, {40, 40}}) {
    const TalkCase c = {.shape = {2, 300, C, H, 15, 7}, .lengths = {300, 140}};
    const ReferenceTalk plain = plain_of(c);
    const auto x = stored<float>(plain.x), g = stored<float>(plain.grad_y);
    const auto left = stored<float>(plain.left);
    const auto right = stored<float>(plain.right);
    const Execution run{testing::in_chunks(3), GetParam(), 0};
    const auto gradients = [&](int set) {
      std::vector<float> grads[3];
      float* to[3];
      for (size_t i = 0; i < 3; ++i) {
        grads[i].assign(i == 0 ? x.size() : left.size(), -1);
        to[i] = (set >> i & 1) != 0 ? grads[i].data() : nullptr;
      }
      talk_backward(
          TalkBackward<float, float>{
              c.shape,
              x.data(),
              left.data(),
              right.data(),
              c.lengths.data(),
              g.data(),
              to[0],
              to[1],
              to[2]},
          run);
      return std::to_array(std::move(grads));
    };
    const auto all = gradients(7);
    for (int set = 1; set < 7; ++set) {
      const auto some = gradients(set);
      for (size_t i = 0; i < 3; ++i)
        if ((set >> i & 1) != 0) {
          EXPECT_EQ(some[i], all[i]) << "C " << C << " set " << set << " " << i;
        }
    }
  }
}

TEST_P(TalkKernels, StepsEqualTheFullForm) {
  constexpr int64_t B = 2, T = 40;
  const Execution run{testing::serial, GetParam()};
  for (const int64_t reach : {1, 7, 31})
    for (const auto& [C, H] :
         {std::pair<int64_t, int64_t>{5, 5},
          {35, 7},
          {160, 2},
          {81, 81},
          {64, 32},
          {69, 23},
          {84, 21},
          {80, 10},
          {90, 10}}) {
      const TalkCase c = {.shape = {B, T, C, H, reach, 0}};
      const auto x = draw<float>(random_, B * T * C);
      const auto left = stored<float>(offsets(c));
      std::vector<float> y(x.size()), ring(place(B * reach * C));
      talk_forward(
          TalkForward<float, float>{c.shape, x.data(), left.data(), nullptr, nullptr, y.data()},
          run);
      std::vector<float> in(place(B * C)), by(place(B * H)), out(in);
      for (int64_t t = 0; t < T; ++t) {
        for (int64_t b = 0; b < B; ++b) {
          std::copy_n(x.begin() + (b * T + t) * C, C, in.begin() + b * C);
          std::copy_n(left.begin() + (b * T + t) * H, H, by.begin() + b * H);
        }
        talk_step(
            TalkStep<float, float>{
                .shape = {B, 1, C, H, reach, 0},
                .x = in.data(),
                .offset_left = by.data(),
                .state = {ring.data(), reach, t},
                .y = out.data()},
            run);
        for (int64_t b = 0; b < B; ++b) {
          const auto want = y.begin() + (b * T + t) * C;
          EXPECT_LE(
              relative_error(
                  std::vector<float>(out.begin() + b * C, out.begin() + (b + 1) * C),
                  testing::wide(std::vector<float>(want, want + C))),
              bound<float>())
              << "position " << t << ", " << C << " channels, reach " << reach;
        }
      }
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels
