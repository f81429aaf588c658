#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/bfloat16.h"
#include "kernels/kernel_support.h"
#include "kernels/packed_linear.h"

/// Maps with random values, and what their products should be.
namespace seqconv::internal::kernels::testing {

/// What is packed, and what multiplies it.
struct LinearKind {
  WeightType type;
  LinearTarget target;
};

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
      values.push_back(static_cast<int32_t>(std::nearbyint(x[k] * (127 / size))));
  }
};

/// A map, its rows and what is added, with random values.
struct LinearMap {
  int64_t rows, K, N;
  LinearEnd end;
  std::vector<float> x, weight, bias, residual;

  LinearMap(int64_t rows, int64_t K, int64_t N, LinearEnd end) : rows(rows), K(K), N(N), end(end) {
    std::mt19937 random(static_cast<uint32_t>(rows * 31 + K * 7 + N));
    for (const auto& [values, count] :
         {std::pair{&x, rows * K},
          {&weight, outputs() * K},
          {&bias, outputs()},
          {&residual, rows * N}}) {
      values->resize(place(count));
      for (float& value : *values)
        value = near_normal(random);
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
  std::vector<float> run(LinearKind kind, const ParallelFor& parallel_for) const {
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
      const double whole =
          std::inner_product(left.values.begin(), left.values.end(), right.values.begin(), 0.0);
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
        const auto gate = map.gated() ? map.sum(GetParam(), row, map.N + n) : sum;
        double want =
            map.ended(sum.value + bias(n), gate.value + bias(map.gated() ? map.N + n : n));
        if (residual)
          want += map.residual[place(row * map.N + n)];
        ASSERT_NEAR(got[n], want, 1e-6 * (3 + sum.size + gate.size))
            << map.rows << " x " << map.K << " x " << map.N << " end " << static_cast<int>(map.end)
            << " row " << row << " n " << n;
      }
      for (int64_t n = map.N; n < stride; ++n)
        ASSERT_EQ(got[n], 7) << "beyond row " << row;
    }
  }
};

}  // namespace seqconv::internal::kernels::testing
