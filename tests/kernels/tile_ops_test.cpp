#include "kernels/tile_ops.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/kernel_support.h"

/// Inner loops whose properties the operators' tests cannot see.
namespace seqconv::kernels {
namespace {

using testing::draw;
using testing::place;

class TileOps : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    TileOps,
    ::testing::ValuesIn(supported_isas()),
    testing::isa_name);

TEST_P(TileOps, StreamingStoresWriteTheSame) {
  constexpr int64_t kChannels = 128, kRows = 13, kTaps = 7;
  const auto x = draw<float>(random_, kRows * kChannels);
  const auto taps = draw<float>(random_, kTaps);
  struct alignas(64) Aligned {
    float values[kRows * kChannels];
  };
  Aligned plain, streamed;
  ConvTile<float, float> tile{
      .in = x.data() - 3 * kChannels,
      .in_stride = kChannels,
      .first = 3,
      .last = kRows + 3,
      .taps = taps.data(),
      .tap_t = -1,
      .tap_r = 1,
      .kernel_size = kTaps,
      .rows = kRows,
      .channels = kChannels,
      .out = plain.values,
      .out_stride = kChannels};
  const auto& ops = row_ops<float, float>(GetParam());
  ops.convolve(tile);
  tile.out = streamed.values;
  tile.streaming = true;
  ops.convolve(tile);
  for (int64_t i = 0; i < kRows * kChannels; ++i)
    ASSERT_EQ(plain.values[i], streamed.values[i]) << i;
}

TEST_P(TileOps, AnOutputHasTheSameBitsWhereverABlockBegins) {
  constexpr int64_t kChannels = 70, kRows = 13, kTaps = 9;
  const auto x = draw<float>(random_, (kRows + kTaps - 1) * kChannels);
  const auto taps = draw<float>(random_, kTaps);
  std::vector<float> all(kRows * kChannels), one(kChannels);
  ConvTile<float, float> tile{
      .in = x.data(),
      .in_stride = kChannels,
      .first = 0,
      .last = kRows + kTaps - 1,
      .taps = taps.data(),
      .tap_t = -1,
      .tap_r = 1,
      .kernel_size = kTaps,
      .rows = kRows,
      .channels = kChannels,
      .out = all.data(),
      .out_stride = kChannels};
  const auto& ops = row_ops<float, float>(GetParam());
  ops.convolve(tile);
  tile.rows = 1;
  tile.out = one.data();
  for (int64_t t = 0; t < kRows; ++t) {
    tile.in = x.data() + t * kChannels;
    tile.last = kRows + kTaps - 1 - t;
    ops.convolve(tile);
    for (int64_t c = 0; c < kChannels; ++c)
      ASSERT_EQ(one[place(c)], all[place(t * kChannels + c)]) << t << " " << c;
  }
}

template <class A>
void expect_exp(Isa isa, double most, double relative) {
  std::vector<A> values;
  for (int i = -4000; i <= 4000; ++i)
    values.push_back(static_cast<A>(i * most / 4000));
  const std::vector<A> x = values;
  const int64_t count = static_cast<int64_t>(values.size());
  values.resize(values.size() + kTapSlack);
  ASSERT_TRUE(tap_ops<A>(isa).exp(values.data(), count));
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(double(values[i]) / want, 1, relative) << x[i];
  }
}

TEST_P(TileOps, ExpIsExactToTwoUnitsOfTheLastPlace) {
  expect_exp<float>(GetParam(), 80, 2.4e-7);
  expect_exp<double>(GetParam(), 600, 1e-15);
}

TEST_P(TileOps, ExpRefusesWhatItCannotDo) {
  for (const float bad :
       {80.1f,
        -80.1f,
        std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(),
        std::nanf("")})
    for (const size_t at : {size_t{0}, size_t{17}, size_t{34}}) {
      std::vector<float> w(35 + kTapSlack, 1.0f);
      w[at] = bad;
      EXPECT_FALSE(tap_ops<float>(GetParam()).exp(w.data(), 35)) << bad;
    }
}

TEST_P(TileOps, SoftmaxTakesEveryValue) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> w = {1000, 999, -inf, -1e30f, -inf, 3, -inf, -inf};
  w.resize(w.size() + kTapSlack);
  tap_ops<float>(GetParam()).softmax(w.data(), 4);
  tap_ops<float>(GetParam()).softmax(w.data() + 4, 4);
  const float e = std::exp(-1.0f);
  EXPECT_FLOAT_EQ(w[0], 1 / (1 + e));
  EXPECT_FLOAT_EQ(w[1], e / (1 + e));
  EXPECT_EQ(w[2], 0);
  EXPECT_EQ(w[3], 0);
  EXPECT_EQ(w[4], 0);
  EXPECT_EQ(w[5], 1);
  w = {1, std::nanf(""), 2, 3};
  w.resize(w.size() + kTapSlack);
  tap_ops<float>(GetParam()).softmax(w.data(), 4);
  EXPECT_TRUE(std::isnan(w[1]));
}

TEST_P(TileOps, BFloat16RoundsToNearestEven) {
  const auto& ops = row_ops<BFloat16, float>(GetParam());
  std::vector<float> values = {
      0.0f,
      -0.0f,
      1.00390625f,
      1.01171875f,
      3e38f,
      3.4e38f,
      1e-40f,
      std::numeric_limits<float>::infinity(),
      std::nanf("")};
  for (const float v : draw<float>(random_, 40))
    values.push_back(v * 1.0001f);
  std::vector<BFloat16> stored(values.size());
  std::vector<float> back(values.size());
  const int64_t count = static_cast<int64_t>(values.size());
  ops.narrow(values.data(), count, stored.data());
  ops.widen(stored.data(), count, back.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(stored[i].bits, to_bfloat16(values[i]).bits) << values[i];
    EXPECT_EQ(std::isnan(back[i]), std::isnan(values[i]));
    if (values[i] == values[i]) {
      EXPECT_EQ(back[i], to_float(stored[i]));
    }
  }
}

}  // namespace
}  // namespace seqconv::kernels
