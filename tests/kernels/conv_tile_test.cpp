#include "kernels/conv/conv_kernels.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/kernel_support.h"

/// Inner loops whose properties the operators' tests cannot see.
namespace seqconv::internal::kernels {
namespace {

using testing::draw;
using testing::place;

class ConvTiles : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvTiles, ::testing::ValuesIn(supported_isas()), testing::isa_name);

/// `way` of the inputs through the taps: -1 and 1.
void expect_streamed(Isa isa, int64_t way, std::mt19937& random) {
  constexpr int64_t kChannels = 128, kRows = 13, kTaps = 7;
  const auto x = draw<float>(random, kRows * kChannels);
  const auto taps = draw<float>(random, kTaps);
  struct alignas(64) Aligned {
    float values[kRows * kChannels];
  };
  Aligned plain, streamed;
  ConvTile<float, float> tile{
      .in = x.data() - 3 * kChannels,
      .in_stride = kChannels,
      .first = 3,
      .last = kRows + 3,
      .taps = taps.data() + (way < 0 ? kTaps - 1 : 0),
      .tap_t = -way,
      .tap_r = way,
      .kernel_size = kTaps,
      .rows = kRows,
      .channels = kChannels,
      .out = plain.values,
      .out_stride = kChannels};
  const auto& ops = conv_kernels<float, float>(isa);
  ops.convolve(tile);
  tile.out = streamed.values;
  tile.streaming = true;
  ops.convolve(tile);
  for (int64_t i = 0; i < kRows * kChannels; ++i)
    ASSERT_EQ(plain.values[i], streamed.values[i]) << i;
}

// Taps from the last to the first make a rolling sum.
TEST_P(ConvTiles, StreamingStoresWriteTheSame) {
  for (const int64_t way : {-1, 1})
    expect_streamed(GetParam(), way, random_);
}

/// All rows of both heads at once, all rows of a head, and every row alone,
/// with taps of their own for every output (way 1: outputs' taps are rows of
/// `taps`; way -1: inputs' are).
void expect_same_bits(Isa isa, int64_t K, int way, std::mt19937& random) {
  constexpr int64_t kHeads = 2, kChannels = 70, kWidth = kHeads * kChannels;
  const int64_t rows = 2 * K + 5, pitch = tap_pitch(K), all_rows = rows + K - 1;
  const auto x = draw<float>(random, all_rows * kWidth);
  const auto taps = draw<float>(random, (all_rows + 1) * kHeads * pitch);
  std::vector<float> all(place(rows * kWidth)), some(place(rows * kWidth));
  const ConvTile<float, float> whole{
      .in = x.data(),
      .in_stride = kWidth,
      .first = 1,
      .last = all_rows - 1,
      .taps = taps.data() + (way > 0 ? 0 : K - 1),
      .tap_t = way > 0 ? kHeads * pitch - 1 : 1,
      .tap_r = way > 0 ? 1 : kHeads * pitch - 1,
      .head_stride = pitch,
      .kernel_size = K,
      .rows = rows,
      .heads = kHeads,
      .channels = kChannels,
      .out = all.data(),
      .out_stride = kWidth};
  const auto& ops = conv_kernels<float, float>(isa);
  ops.convolve(whole);
  // Rows [t, t + count) of head h.
  const auto part = [&](int64_t t, int64_t count, int64_t h) {
    ConvTile<float, float> tile = whole;
    tile.in += t * kWidth + h * kChannels;
    tile.taps += t * (tile.tap_t + tile.tap_r) + h * pitch;
    tile.first -= t;
    tile.last -= t;
    tile.rows = count;
    tile.heads = 1;
    tile.out = some.data() + t * kWidth + h * kChannels;
    ops.convolve(tile);
  };
  const auto expect_all = [&](const char* what) {
    for (int64_t i = 0; i < rows * kWidth; ++i)
      ASSERT_EQ(some[place(i)], all[place(i)])
          << what << ", K " << K << " row " << i / kWidth << " channel " << i % kWidth;
    std::fill(some.begin(), some.end(), 0.0f);
  };
  for (int64_t h = 0; h < kHeads; ++h)
    part(0, rows, h);
  expect_all("a head alone");
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < kHeads; ++h)
      part(t, 1, h);
  expect_all("a row alone");
}

TEST_P(ConvTiles, AnOutputHasTheSameBitsWhereverABlockBegins) {
  for (const int64_t K : {2, 3, 5, 7, 9, 15, 16, 31, 33})
    for (const int way : {1, -1})
      expect_same_bits(GetParam(), K, way, random_);
}

TEST_P(ConvTiles, BFloat16RoundsToNearestEven) {
  const auto& ops = conv_kernels<BFloat16, float>(GetParam());
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
  const int64_t count = static_cast<int64_t>(values.size());
  ops.narrow(values.data(), count, stored.data(), /*streaming=*/false);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(stored[i].bits, to_bfloat16(values[i]).bits) << values[i];
    EXPECT_EQ(std::isnan(to_float(stored[i])), std::isnan(values[i]));
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
