#include "seqconv/kernels/packed_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

#include "kernels/kernel_support.h"
#include "seqconv/base/error.h"
#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/isa_names.h"
#include "support/errors.h"

namespace seqconv::kernels {
namespace {

using testing::in_chunks;
using testing::one_by_one;
using testing::place;
using testing::serial;

constexpr LinearEnd kEnds[] = {
    LinearEnd::kNone,
    LinearEnd::kRelu,
    LinearEnd::kSwish,
    LinearEnd::kGlu};

/// What is packed, and what multiplies it.
struct LinearKind {
  WeightType type;
  LinearTarget target;
};

std::vector<LinearKind> all_kinds() {
  std::vector<LinearKind> kinds;
  for (const WeightType type :
       {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8})
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

/// A row [K] as whole numbers, and their unit (the definition, in plain words).
struct WholeRow {
  std::vector<int32_t> values;
  float unit = 0;

  WholeRow(const float* x, int64_t K) {
    float size = 0;
    for (int64_t k = 0; k < K; ++k)
      size = std::max(size, std::abs(x[k]));
    unit = size / 127;
    for (int64_t k = 0; k < K; ++k)
      values.push_back(
          static_cast<int32_t>(std::nearbyint(x[k] * (127 / size))));
  }
};

/// A map, its rows and what is added, with random values.
struct LinearMap {
  int64_t rows, K, N;
  LinearEnd end;
  std::vector<float> x, weight, bias, residual;

  LinearMap(int64_t rows, int64_t K, int64_t N, LinearEnd end)
      : rows(rows), K(K), N(N), end(end) {
    std::mt19937 random(static_cast<uint32_t>(rows * 31 + K * 7 + N));
    std::normal_distribution<float> normal;
    for (const auto& [values, count] :
         {std::pair{&x, rows * K},
          {&weight, outputs() * K},
          {&bias, outputs()},
          {&residual, rows * N}}) {
      values->resize(place(count));
      for (float& value : *values)
        value = normal(random);
    }
    // So that activations are seen where they bend.
    for (float& w : weight)
      w /= std::sqrt(static_cast<float>(K));
  }

  bool gated() const { return end == LinearEnd::kGlu; }
  int64_t outputs() const { return gated() ? 2 * N : N; }
  PackedLinear packed(LinearKind kind) const {
    return {weight.data(), outputs(), K, gated(), kind.type, kind.target};
  }
  LinearPass pass(std::vector<float>& y) const {
    return {
        .rows = rows,
        .x = x.data(),
        .bias = bias.data(),
        .residual = residual.data(),
        .end = end,
        .y = y.data()};
  }
  /// y from rows one after the other.
  std::vector<float> run(LinearKind kind, const ParallelFor& parallel_for)
      const {
    std::vector<float> y(place(rows * N), 7);
    packed_linear(packed(kind), pass(y), parallel_for);
    return y;
  }

  /// A product in double, and the sizes of its terms, which bound the rounding
  /// of a sum.
  struct Sum {
    double value = 0, size = 0;
  };
  Sum sum(LinearKind kind, int64_t row, int64_t output) const {
    const float* const a = x.data() + row * K;
    const float* const b = weight.data() + output * K;
    if (kind.type == WeightType::kInt8) {
      const WholeRow left(a, K), right(b, K);
      const double whole = std::inner_product(
          left.values.begin(),
          left.values.end(),
          right.values.begin(),
          0.0);
      const double value = whole * double{left.unit} * right.unit;
      return {value, std::abs(value)};
    }
    const bool narrow = kind.type == WeightType::kBfloat16;
    const bool both = kind.target.narrow != NarrowProducts::kWidened;
    const auto rounded = [](float value, bool is_rounded) {
      return double{is_rounded ? to_float(to_bfloat16(value)) : value};
    };
    Sum sum;
    for (int64_t k = 0; k < K; ++k) {
      const double product = rounded(a[k], both) * rounded(b[k], narrow);
      sum.value += product;
      sum.size += std::abs(product);
    }
    return sum;
  }
  /// The end of z, with the gate g where there is one.
  double ended(double z, double g) const {
    switch (end) {
      case LinearEnd::kNone:
        return z;
      case LinearEnd::kRelu:
        return z < 0 ? 0 : z;
      case LinearEnd::kSwish:
        return z / (1 + std::exp(-z));
      case LinearEnd::kGlu:
        return z / (1 + std::exp(-g));
    }
    return 0;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
      std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class PackedLinearPass : public ::testing::TestWithParam<LinearKind> {
 protected:
  /// With or without bias and residual, rows of y apart from each other.
  static void expect_right(const LinearMap& map, bool biased, bool residual) {
    const int64_t stride = map.N + 3;
    std::vector<float> y(place(map.rows * stride), 7);
    LinearPass pass = map.pass(y);
    pass.y_stride = stride;
    if (!biased)
      pass.bias = nullptr;
    if (!residual)
      pass.residual = nullptr;
    packed_linear(map.packed(GetParam()), pass, in_chunks(2));
    const auto bias = [&](int64_t output) {
      return biased ? double{map.bias[place(output)]} : 0.0;
    };
    for (int64_t row = 0; row < map.rows; ++row) {
      const float* const got = y.data() + row * stride;
      for (int64_t n = 0; n < map.N; ++n) {
        const auto sum = map.sum(GetParam(), row, n);
        const auto gate =
            map.gated() ? map.sum(GetParam(), row, map.N + n) : sum;
        double want = map.ended(
            sum.value + bias(n),
            gate.value + bias(map.gated() ? map.N + n : n));
        if (residual)
          want += map.residual[place(row * map.N + n)];
        ASSERT_NEAR(got[n], want, 1e-6 * (3 + sum.size + gate.size))
            << map.rows << " x " << map.K << " x " << map.N << " end "
            << static_cast<int>(map.end) << " row " << row << " n " << n;
      }
      for (int64_t n = map.N; n < stride; ++n)
        ASSERT_EQ(got[n], 7) << "beyond row " << row;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    PackedLinearPass,
    ::testing::ValuesIn(all_kinds()),
    kind_name);

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
    for (const auto& [rows, K] :
         {std::pair{1, 300}, {3, 300}, {7, 300}, {13, 1024}, {37, 2048}}) {
      const LinearMap map(rows, K, K > 1000 ? 34 : 150, end);
      const PackedLinear packed = map.packed(GetParam());
      std::vector<float> all(place(rows * map.N)), y(all.size());
      packed_linear(packed, map.pass(all), serial);
      for (const ParallelFor& split :
           {in_chunks(2), in_chunks(5), ParallelFor(one_by_one)}) {
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
      std::copy_n(
          map.weight.begin() + first * map.K,
          map.K,
          map.weight.begin() + o * map.K);
      map.bias[place(o)] = map.bias[place(first)];
    }
    for (int64_t i = 0; i < map.rows * map.N; ++i)
      map.residual[place(i)] = map.residual[place(i / map.N * map.N)];
    const std::vector<float> y = map.run(GetParam(), serial);
    for (int64_t i = 0; i < map.rows * map.N; ++i)
      ASSERT_EQ(y[place(i)], y[place(i / map.N * map.N)])
          << i / map.N << " " << i % map.N;
  }
}

TEST_P(PackedLinearPass, OfSomeRowsHasTheBitsOfAll) {
  for (const auto& [rows, K, N] :
       {std::tuple{1, 77, 203}, {5, 1, 40}, {9, 64, 130}, {20, 1025, 33}}) {
    const LinearMap map(rows, K, N, LinearEnd::kNone);
    std::vector<float> all(place(rows * N));
    LinearPass whole = map.pass(all);
    whole.residual = nullptr;
    const PackedLinear packed = map.packed(GetParam());
    packed_linear(packed, whole, serial);
    for (const int count : {0, 1, 7, 16, 33, 90}) {
      std::vector<int32_t> some;  // in any order, some of them twice
      for (int i = 0; i < count; ++i)
        some.push_back((i * 37 + i / 4 * 5) % N);
      const PackedLinear few = packed.rows(some);
      ASSERT_EQ(few.outputs(), count);
      ASSERT_EQ(few.inputs(), K);
      std::vector<float> bias, y(place(rows * count), 7);
      for (const int32_t row : some)
        bias.push_back(map.bias[place(row)]);
      LinearPass pass = map.pass(y);
      pass.bias = bias.data();
      pass.residual = nullptr;
      packed_linear(few, pass, serial);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(
              y[place(row * count + i)],
              all[place(row * N + some[place(i)])])
              << N << " outputs, " << count << " of them, row " << row;
    }
  }
}

TEST(PackedLinearErrors, AreRowsThatAreNotThere) {
  const std::vector<float> weight(6, 1.0F);
  const PackedLinear packed(weight.data(), 2, 3),
      gated(weight.data(), 2, 3, true);
  for (const int32_t row : {-1, 2})
    EXPECT_EQ(
        seqconv::testing::error_of([&] {
          packed.rows(std::vector{0, row});
        }),
        concat("rows of weights must be in [0, 2), but got ", row));
  EXPECT_EQ(
      seqconv::testing::error_of([&] { gated.rows(std::vector{0}); }),
      "rows of gated weights stand in two panels");
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
        {weight.data(),
         gated ? 2 : 1,
         1,
         gated,
         GetParam().type,
         GetParam().target},
        {.rows = static_cast<int64_t>(x.size()),
         .x = x.data(),
         .end = end,
         .y = y.data()},
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
          weight.data(),
          2 * N,
          64,
          gated,
          GetParam().type,
          GetParam().target);
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
    scales[place(n)] = quantize_row(
        map.weight.data() + n * map.K,
        map.K,
        values.data() + n * map.K);
  const LinearTarget target = best_linear_target(WeightType::kInt8);
  std::vector<float> y(place(map.rows * map.N));
  packed_linear(
      {Int8Weights{values.data(), scales.data()}, map.outputs(), map.K, true},
      map.pass(y),
      serial);
  EXPECT_TRUE(same_bits(map.run({WeightType::kInt8, target}, serial), y));
}

}  // namespace
}  // namespace seqconv::kernels
