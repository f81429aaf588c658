#include "kernels/tile_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/talk_window.h"
#include "seqconv/base/random.h"

/// The inner loops, for every instruction set this processor has, against the
/// same thing said in scalar double arithmetic.
namespace seqconv::kernels {
namespace {

class TileOpsTest : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};

  template <class A>
  std::vector<A> draw(int64_t count) {
    std::normal_distribution<double> normal;
    std::vector<A> values(static_cast<size_t>(count));
    for (A& value : values)
      value = static_cast<A>(normal(random_));
    return values;
  }

  template <class A>
  static double at(const std::vector<A>& values, int64_t i) {
    return static_cast<double>(values[static_cast<size_t>(i)]);
  }

  template <class A>
  static double bound() {
    return std::is_same_v<A, float> ? 1e-5 : 1e-13;
  }
};

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  switch (info.param) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    TileOpsTest,
    ::testing::ValuesIn(supported_isas()),
    isa_name);

constexpr int64_t kPitches[] = {16, 32, 64};

struct ConvolveSizes {
  int64_t pitch, rows, kernel_size, stride;
};

TEST_P(TileOpsTest, ConvolveEqualsItsSum) {
  const auto check = [&]<class A>(A, const ConvolveSizes& s) {
    const int64_t K = s.kernel_size;
    const auto x = draw<A>((s.rows + K - 1) * s.pitch);
    const auto taps = draw<A>(s.rows * (K + 1));
    const std::vector<A> init(static_cast<size_t>(s.pitch), A(0.5));
    std::vector<A> out(static_cast<size_t>(s.rows * s.pitch));
    tile_ops<A>(GetParam())
        .convolve(
            {.x = x.data(),
             .pitch = s.pitch,
             .taps = taps.data(),
             .tap_stride = s.stride,
             .kernel_size = K,
             .rows = s.rows,
             .init = init.data(),
             .out = out.data()});
    for (int64_t t = 0; t < s.rows; ++t)
      for (int64_t c = 0; c < s.pitch; ++c) {
        double want = 0.5;
        for (int64_t j = 0; j < K; ++j)
          want += at(taps, t * s.stride + j) * at(x, (t + j) * s.pitch + c);
        ASSERT_NEAR(at(out, t * s.pitch + c), want, bound<A>() * 20)
            << "t " << t << " c " << c << " K " << K;
      }
  };
  for (const int64_t pitch : kPitches)
    for (const int64_t rows : {1, 2, 5, 6, 7, 13})
      for (const int64_t K : {1, 2, 3, 5, 6, 7, 31})
        for (const int64_t stride : {int64_t{0}, K + 1}) {
          check(float{}, {pitch, rows, K, stride});
          check(double{}, {pitch, rows, K, stride});
        }
}

TEST_P(TileOpsTest, ConvolveGivesTheSameBitsWhereverABlockBegins) {
  constexpr int64_t kPitch = 64, kRows = 13, kTaps = 9;
  const auto x = draw<float>((kRows + kTaps - 1) * kPitch);
  const auto taps = draw<float>(kTaps);
  const std::vector<float> init(kPitch, 0.0f);
  std::vector<float> all(kRows * kPitch), one(kPitch);
  ConvTile<float> tile = {
      .x = x.data(),
      .pitch = kPitch,
      .taps = taps.data(),
      .tap_stride = 0,
      .kernel_size = kTaps,
      .rows = kRows,
      .init = init.data(),
      .out = all.data()};
  tile_ops<float>(GetParam()).convolve(tile);
  for (int64_t t = 0; t < kRows; ++t) {
    tile.x = x.data() + t * kPitch;
    tile.rows = 1;
    tile.out = one.data();
    tile_ops<float>(GetParam()).convolve(tile);
    for (int64_t c = 0; c < kPitch; ++c)
      ASSERT_EQ(
          one[static_cast<size_t>(c)],
          all[static_cast<size_t>(t * kPitch + c)]);
  }
}

TEST_P(TileOpsTest, TapGradientsEqualTheirSums) {
  const auto check = [&]<class A>(A, int64_t pitch, int64_t rows, int64_t K) {
    const auto x = draw<A>((rows + K - 1) * pitch), g = draw<A>(rows * pitch);
    const int64_t lanes = 16 * ((K + 15) / 16);
    std::vector<A> own(static_cast<size_t>(rows * lanes), A(0));
    std::vector<double> shared(static_cast<size_t>(K), 1.0);
    const auto& ops = tile_ops<A>(GetParam());
    ops.tap_gradient(x.data(), g.data(), pitch, rows, K, own.data(), lanes);
    ops.shared_tap_gradient(x.data(), g.data(), pitch, rows, K, shared.data());
    for (int64_t j = 0; j < lanes; ++j) {
      double sum = 1.0;
      for (int64_t t = 0; t < rows; ++t) {
        double dot = 0;  // lanes beyond K stay zero
        for (int64_t c = 0; c < pitch && j < K; ++c)
          dot += at(g, t * pitch + c) * at(x, (t + j) * pitch + c);
        ASSERT_NEAR(at(own, t * lanes + j), dot, j < K ? bound<A>() * 50 : 0);
        sum += dot;
      }
      if (j < K) {
        ASSERT_NEAR(at(shared, j), sum, bound<A>() * 200);
      }
    }
  };
  for (const int64_t pitch : kPitches)
    for (const int64_t rows : {1, 7})
      for (const int64_t K : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31}) {
        check(float{}, pitch, rows, K);
        check(double{}, pitch, rows, K);
      }
}

template <class A>
void check_softmax(Isa isa, std::vector<A> w, int64_t K, double bound) {
  const int64_t pitch = static_cast<int64_t>(w.size());
  const std::vector<A> raw = w;
  tile_ops<A>(isa).softmax(w.data(), pitch, 1, K);
  double total = 0;
  for (int64_t j = 0; j < K; ++j)
    total += std::exp(double(raw[static_cast<size_t>(j)]) - double(raw[0]));
  for (int64_t j = 0; j < pitch; ++j) {
    const double want = j < K
        ? std::exp(double(raw[static_cast<size_t>(j)]) - double(raw[0])) / total
        : 0.0;
    ASSERT_NEAR(w[static_cast<size_t>(j)], want, bound) << j << " of " << K;
  }
}

TEST_P(TileOpsTest, SoftmaxEqualsItsDefinition) {
  for (const int64_t K : {1, 2, 3, 7, 15, 16, 17, 31}) {
    check_softmax(GetParam(), draw<float>(16 * ((K + 15) / 16)), K, 2e-7);
    check_softmax(GetParam(), draw<double>(16 * ((K + 15) / 16)), K, 1e-15);
  }
}

TEST_P(TileOpsTest, SoftmaxOfExtremesIsExactOrNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto& ops = tile_ops<float>(GetParam());
  std::vector<float> w(16, 0.0f);
  w[0] = 1000, w[1] = -1000, w[2] = -kInf;
  ops.softmax(w.data(), 16, 1, 3);
  EXPECT_EQ(w[0], 1.0f);
  EXPECT_EQ(w[1], 0.0f);
  EXPECT_EQ(w[2], 0.0f);
  w = std::vector<float>(16, 0.0f);
  w[1] = std::nanf("");
  ops.softmax(w.data(), 16, 1, 3);
  EXPECT_TRUE(std::isnan(w[0]) && std::isnan(w[1]) && std::isnan(w[2]));
}

TEST_P(TileOpsTest, BFloat16RoundsToNearestEven) {
  const auto& rows = row_ops<BFloat16, float>(GetParam());
  const float values[] = {
      1.0f,
      1.00390625f,
      1.01171875f,
      -3.14159f,
      1e-40f,
      3.4e38f,
      std::numeric_limits<float>::infinity(),
      std::nanf("")};
  for (const float value : values) {
    BFloat16 stored;
    rows.store(&value, 1, 1, 1, &stored, 1);
    EXPECT_EQ(stored.bits, to_bfloat16(value).bits) << value;
    float back[16];
    rows.load(&stored, 1, 1, 1, back, 16);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(back[0]));
    else
      EXPECT_EQ(back[0], to_float(stored));
    EXPECT_EQ(back[1], 0.0f);
  }
  EXPECT_EQ(to_bfloat16(1.00390625f).bits, 0x3f80);  // a tie goes to even
  EXPECT_EQ(to_bfloat16(1.01171875f).bits, 0x3f82);
}

TEST_P(TileOpsTest, WeightedSumEqualsItsSum) {
  for (const int64_t width : {1, 5, 16, 64, 67, 130}) {
    const auto x = draw<float>(7 * (width + 3)), taps = draw<float>(7);
    std::vector<float> acc(static_cast<size_t>(width), 0.25f);
    row_ops<float, float>(GetParam())
        .weighted_sum(x.data(), width + 3, taps.data(), 7, acc.data(), width);
    for (int64_t c = 0; c < width; ++c) {
      double want = 0.25;
      for (int64_t i = 0; i < 7; ++i)
        want += double(taps[static_cast<size_t>(i)]) *
            double(x[static_cast<size_t>(i * (width + 3) + c)]);
      ASSERT_NEAR(acc[static_cast<size_t>(c)], want, 1e-5);
    }
  }
}

TEST(TalkWindow, SplitsDistancesAndClampsThem) {
  using ::testing::FieldsAre;
  const auto window = [](int64_t t, double left, double right) {
    return talk_window<double>(t, 10, left, right);
  };
  // begin, end, left, right, left weight, right weight
  EXPECT_THAT(window(5, 2.25, 1.5), FieldsAre(3, 7, 2, 7, 0.25, 0.5));
  EXPECT_THAT(window(5, 2.0, 0.0), FieldsAre(3, 6, 3, 5, 0.0, 0.0));
  EXPECT_THAT(window(1, 7.5, 20.5), FieldsAre(0, 10, 0, 9, 0.0, 0.0));
  EXPECT_THAT(window(0, 0.5, 0.5), FieldsAre(0, 1, 0, 1, 0.0, 0.5));
  const auto bad = window(5, std::nan(""), 1.0);
  EXPECT_TRUE(std::isnan(bad.left_weight));
  EXPECT_EQ(bad.begin, 5);
}

}  // namespace
}  // namespace seqconv::kernels
