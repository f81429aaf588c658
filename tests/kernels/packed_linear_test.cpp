#include "kernels/packed_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "kernels/isa.h"
#include "linear_maps.h"

namespace seqconv::internal::kernels {
namespace {

using testing::in_chunks;
using testing::LinearKind;
using testing::LinearMap;
using testing::one_by_one;
using testing::PackedLinearPass;
using testing::place;
using testing::serial;
using testing::WholeRow;

constexpr LinearEnd kEnds[] = {
    LinearEnd::kNone, LinearEnd::kRelu, LinearEnd::kSwish, LinearEnd::kGlu};

std::vector<LinearKind> all_kinds() {
  std::vector<LinearKind> kinds;
  for (const WeightType type : {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8})
    for (const LinearTarget target : linear_targets(type))
      kinds.push_back({type, target});
  return kinds;
}

std::string kind_name(const ::testing::TestParamInfo<LinearKind>& info) {
  const char* const ways[] = {"", "_dot", "_tiles"};
  return concat(
      enum_name(info.param.type),
      "_",
      enum_name(info.param.target.isa),
      ways[static_cast<int>(info.param.target.narrow)]);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

INSTANTIATE_TEST_SUITE_P(Kinds, PackedLinearPass, ::testing::ValuesIn(all_kinds()), kind_name);

TEST_P(PackedLinearPass, MatchesPlainLoopsForAwkwardSizes) {
  int turn = 0;
  const auto expect = [&](const LinearMap& map) {
    ++turn;
    expect_right(map, /*biased=*/turn % 2 == 0, /*residual=*/turn % 3 == 0);
  };
  for (const LinearEnd end : kEnds) {
    for (const int64_t N : {1, 3, 8, 16, 17, 31, 33, 64, 65, 130, 257})
      for (const int64_t K : {1, 2, 5, 66})
        expect({1 + turn % 5, K, N, end});
    for (int64_t rows = 1; rows < 30; ++rows)
      expect({rows, 7, 130 + rows % 3, end});
    for (const bool biased : {false, true})
      for (const bool residual : {false, true})
        expect_right({14, 9, 100, end}, biased, residual);
  }
  expect({50, 1024, 17, LinearEnd::kNone});
  expect({13, 4097, 5, LinearEnd::kGlu});
}

TEST_P(PackedLinearPass, HasTheSameBitsHoweverItIsCut) {
  for (const LinearEnd end : kEnds)
    for (const auto& [rows, K] : {std::pair{1, 300}, {3, 300}, {7, 300}, {13, 1024}, {37, 2048}}) {
      const LinearMap map(rows, K, K > 1000 ? 34 : 150, end);
      const PackedLinear packed = map.packed(GetParam());
      std::vector<float> all(place(rows * map.N)), y(all.size());
      packed_linear(packed, map.pass(all), serial);
      for (const ParallelFor& split : {in_chunks(2), in_chunks(5), ParallelFor(one_by_one)}) {
        std::fill(y.begin(), y.end(), 7.0F);
        packed_linear(packed, map.pass(y), split);
        ASSERT_TRUE(same_bits(all, y)) << rows << " rows";
      }
      // Rows on their own.
      for (int64_t row = 0; row < rows; ++row) {
        LinearPass pass = map.pass(y);
        pass.rows = 1;
        pass.x += row * map.K;
        pass.residual += row * map.N;
        pass.y += row * map.N;
        packed_linear(packed, pass, serial);
      }
      ASSERT_TRUE(same_bits(all, y)) << rows << " rows";
    }
}

// Where an output stands among the others must not matter either: the same
// weights in every place, tails of panels included.
TEST_P(PackedLinearPass, HasTheSameBitsInEveryPlace) {
  for (const LinearEnd end : kEnds) {
    LinearMap map(14, 77, 203, end);
    for (int64_t o = 0; o < map.outputs(); ++o) {
      const int64_t first = o < map.N ? 0 : map.N;
      std::copy_n(map.weight.begin() + first * map.K, map.K, map.weight.begin() + o * map.K);
      map.bias[place(o)] = map.bias[place(first)];
    }
    for (int64_t i = 0; i < map.rows * map.N; ++i)
      map.residual[place(i)] = map.residual[place(i / map.N * map.N)];
    const std::vector<float> y = map.run(GetParam(), serial);
    for (int64_t i = 0; i < map.rows * map.N; ++i)
      ASSERT_EQ(y[place(i)], y[place(i / map.N * map.N)]) << i / map.N << " " << i % map.N;
  }
}

#if defined(__x86_64__)
TEST_P(PackedLinearPass, AddsUpInAscendingOrder) {
  if (GetParam().type != WeightType::kFloat32)
    return;  // int8: below; bfloat16: as the processor does
  const bool fused = GetParam().target.isa != Isa::kBaseline;
  const LinearMap map(9, 300, 70, LinearEnd::kNone);
  const std::vector<float> y = map.run(GetParam(), serial);
  for (int64_t row = 0; row < map.rows; ++row)
    for (int64_t n = 0; n < map.N; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < map.K; ++k) {
        const float a = map.x[place(row * map.K + k)];
        const float b = map.weight[place(n * map.K + k)];
        const volatile float product = a * b;
        sum = fused ? std::fma(a, b, sum) : sum + product;
      }
      ASSERT_EQ(
          y[place(row * map.N + n)],
          map.residual[place(row * map.N + n)] + (sum + map.bias[place(n)]));
    }
}
#endif

TEST_P(PackedLinearPass, AddsToItsResidualInPlace) {
  for (const LinearEnd end : kEnds) {
    const LinearMap map(8, 40, 90, end);
    const std::vector<float> want = map.run(GetParam(), serial);
    std::vector<float> y = map.residual;
    LinearPass pass = map.pass(y);
    pass.residual = y.data();
    packed_linear(map.packed(GetParam()), pass, in_chunks(3));
    EXPECT_TRUE(same_bits(want, y));
  }
}

TEST_P(PackedLinearPass, KeepsNanInItsRow) {
  for (const LinearEnd end : kEnds) {
    LinearMap map(15, 33, 50, end);
    const std::vector<float> clean = map.run(GetParam(), serial);
    map.x[place(4 * map.K + 20)] = std::nanf("");
    const std::vector<float> y = map.run(GetParam(), serial);
    for (int64_t i = 0; i < map.rows * map.N; ++i) {
      if (i / map.N == 4)
        ASSERT_TRUE(std::isnan(y[place(i)])) << i;
      else
        ASSERT_EQ(y[place(i)], clean[place(i)]) << i;
    }
  }
}

TEST_P(PackedLinearPass, SpoilsTheRowOfAnInfinity) {
  LinearMap map(7, 33, 50, LinearEnd::kNone);
  map.x[place(4 * map.K + 20)] = -std::numeric_limits<float>::infinity();
  const std::vector<float> y = map.run(GetParam(), serial);
  for (int64_t i = 0; i < map.rows * map.N; ++i)
    ASSERT_EQ(std::isfinite(y[place(i)]), i / map.N != 4) << i;
}

TEST_P(PackedLinearPass, KeepsNanOfGates) {
  LinearMap map(3, 5, 20, LinearEnd::kGlu);
  map.bias[place(map.N + 17)] = std::nanf("");
  const std::vector<float> y = map.run(GetParam(), serial);
  for (int64_t i = 0; i < map.rows * map.N; ++i)
    ASSERT_EQ(std::isnan(y[place(i)]), i % map.N == 17);
}

// x w with w = 1, so that z is x: every input of the activations.
TEST_P(PackedLinearPass, ActivatesToFourUnitsOfTheLastPlace) {
  if (GetParam().type != WeightType::kFloat32)
    return;  // z is not x to the last place
  std::vector<float> x;
  for (int i = -4000; i <= 4000; ++i)
    x.push_back(static_cast<float>(i) / 47);
  for (const float size : {1e-30F, 1e-6F, 87.F, 88.F, 100.F, 1e4F, 3e38F})
    x.insert(x.end(), {size, -size});
  const std::vector<float> weight = {1, 1};
  std::vector<float> y(x.size());
  for (const LinearEnd end : {LinearEnd::kSwish, LinearEnd::kGlu}) {
    const bool gated = end == LinearEnd::kGlu;
    packed_linear(
        {weight.data(), gated ? 2 : 1, 1, gated, GetParam().type, GetParam().target},
        {.rows = static_cast<int64_t>(x.size()), .x = x.data(), .end = end, .y = y.data()},
        serial);
    for (size_t i = 0; i < x.size(); ++i) {
      const double z = x[i], want = z / (1 + std::exp(-z));
      // What is beside nothing may be nothing.
      ASSERT_NEAR(y[i], want, 4.8e-7 * std::abs(want) + 2e-36) << z;
    }
  }
}

TEST_P(PackedLinearPass, IgnoresWhatIsNoRow) {
  const LinearMap map(1, 4, 4, LinearEnd::kRelu);
  std::vector<float> y(1, 7);
  LinearPass pass = map.pass(y);
  pass.rows = 0;
  packed_linear(map.packed(GetParam()), pass, serial);
  EXPECT_EQ(y[0], 7);
}

TEST_P(PackedLinearPass, TakesLittleMoreMemoryThanItsWeights) {
  for (const int64_t N : {512, 1000, 2048, 10000}) {
    const std::vector<float> weight(place(2 * N * 64));
    const auto count = static_cast<double>(weight.size());
    for (const bool gated : {false, true}) {
      const PackedLinear packed(
          weight.data(), 2 * N, 64, gated, GetParam().type, GetParam().target);
      const auto bytes = static_cast<double>(packed.bytes());
      switch (GetParam().type) {
        case WeightType::kFloat32:
          EXPECT_LE(bytes, 1.025 * 4 * count) << N;
          break;
        case WeightType::kBfloat16:
          EXPECT_LE(bytes, 1.025 * 2 * count) << N;
          break;
        case WeightType::kInt8:
          // Beside them eight bytes an output.
          EXPECT_LE(bytes, 1.025 * count + 8.0 * 2 * N) << N;
          break;
      }
    }
  }
}

/// Whole numbers have one result, which every target must give to the bit.
TEST(PackedInt8Linear, HasTheSameBitsOnEveryTarget) {
  for (const auto& [rows, K, N] :
       {std::tuple{1, 512, 70}, {9, 301, 33}, {14, 2050, 20}, {3, 4, 5}}) {
    const LinearMap map(rows, K, N, LinearEnd::kNone);
    std::vector<float> want(place(rows * N));
    for (int64_t i = 0; i < int64_t{rows} * N; ++i) {
      const WholeRow left(map.x.data() + i / N * K, K);
      const WholeRow right(map.weight.data() + i % N * K, K);
      int64_t sum = 0;
      for (int64_t k = 0; k < K; ++k)
        sum += left.values[place(k)] * right.values[place(k)];
      const volatile float scale = left.unit * right.unit;
      const volatile float product = static_cast<float>(sum) * scale;
      const volatile float biased = product + map.bias[place(i % N)];
      want[place(i)] = map.residual[place(i)] + biased;
    }
    for (const LinearTarget target : linear_targets(WeightType::kInt8))
      EXPECT_TRUE(same_bits(map.run({WeightType::kInt8, target}, serial), want))
          << enum_name(target.isa) << static_cast<int>(target.narrow);
  }
}

// The largest sums there are: products of pairs that would not fit into 16
// bits.
TEST(PackedInt8Linear, NeverSaturates) {
  constexpr int64_t kInputs = 60000;
  for (const float sign : {1.0F, -1.0F}) {
    const std::vector<float> x(kInputs, sign), weight(kInputs, 1);
    for (const LinearTarget target : linear_targets(WeightType::kInt8)) {
      float y = 0;
      packed_linear(
          {weight.data(), 1, kInputs, false, WeightType::kInt8, target},
          {.rows = 1, .x = x.data(), .y = &y},
          serial);
      EXPECT_NEAR(y, sign * kInputs, 0.05) << enum_name(target.isa);
    }
  }
}

TEST(PackedInt8Linear, TakesTinyRowsForNothing) {
  for (const float size : {0.0F, 1e-31F, 1e-44F}) {
    const std::vector<float> x(40, size), weight(40, 1);
    for (const LinearTarget target : linear_targets(WeightType::kInt8)) {
      float y = 7;
      packed_linear(
          {weight.data(), 1, 40, false, WeightType::kInt8, target},
          {.rows = 1, .x = x.data(), .y = &y},
          serial);
      EXPECT_EQ(y, 0) << enum_name(target.isa);
    }
  }
}

TEST(PackedInt8Linear, IsTheSameOfWholeNumbersAsOfThoseThatTheyWere) {
  const LinearMap map(5, 77, 40, LinearEnd::kGlu);
  std::vector<int8_t> values(map.weight.size());
  std::vector<float> scales(place(map.outputs()));
  for (int64_t n = 0; n < map.outputs(); ++n)
    scales[place(n)] =
        quantize_row(map.weight.data() + n * map.K, map.K, values.data() + n * map.K);
  const LinearTarget target = best_linear_target(WeightType::kInt8);
  std::vector<float> y(place(map.rows * map.N));
  packed_linear(
      {Int8Weights{values.data(), scales.data()}, map.outputs(), map.K, true}, map.pass(y), serial);
  EXPECT_TRUE(same_bits(map.run({WeightType::kInt8, target}, serial), y));
}

}  // namespace
}  // namespace seqconv::internal::kernels
