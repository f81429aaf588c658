#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/random.h"
#include "kernels/activation.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/layer_norm.h"
#include "kernels/parallel.h"

namespace seqconv::internal::kernels {
namespace {

using testing::in_chunks;
using testing::one_by_one;
using testing::serial;

template <class T>
std::vector<T> draw(int64_t count, uint32_t seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> values(count);
  for (T& value : values)
    value = static_cast<T>(normal(generator));
  return values;
}

template <class T>
T dropped(const Dropout& drop, int64_t i, T value) {
  return random_word(drop.seed, i) >= drop_threshold(drop.p)
      ? value * static_cast<T>(1.0 / (1.0 - drop.p))
      : T{0};
}

template <class T>
class FusedKernels : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FusedKernels, Types);

const std::vector<int64_t> kAwkwardCounts = {
    0, 1, 2, 7, 15, 16, 17, 63, 65, 511, 512, 513, 4095, 4097, 9001};

TYPED_TEST(FusedKernels, DropoutKeepsWhatTheRandomWordsSay) {
  using T = TypeParam;
  for (const int64_t n : kAwkwardCounts) {
    const Dropout drop{0.3, 77u + static_cast<uint64_t>(n)};
    const auto x = draw<T>(n, 1), residual = draw<T>(n, 2);
    std::vector<T> y(n), sum(n);
    dropout(x.data(), y.data(), n, drop, in_chunks(3));
    dropout_add(x.data(), residual.data(), sum.data(), n, drop, serial);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], dropped(drop, i, x[i])) << i << " of " << n;
      ASSERT_NEAR(sum[i], residual[i] + y[i], 1e-6) << i << " of " << n;
    }
  }
}

TYPED_TEST(FusedKernels, DropoutOfZeroCopies) {
  using T = TypeParam;
  const auto x = draw<T>(5000, 3);
  std::vector<T> y(x.size());
  dropout(x.data(), y.data(), 5000, Dropout{}, serial);
  EXPECT_EQ(x, y);
  dropout_add(x.data(), x.data(), y.data(), 5000, Dropout{}, serial);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], x[i] + x[i]);
}

TYPED_TEST(FusedKernels, DroppedNanBecomesZero) {
  using T = TypeParam;
  const Dropout drop{0.5, 4};
  const std::vector<T> x(1000, std::numeric_limits<T>::quiet_NaN());
  std::vector<T> y(1000);
  dropout(x.data(), y.data(), 1000, drop, serial);
  for (int64_t i = 0; i < 1000; ++i) {
    const bool kept = random_word(drop.seed, i) >= drop_threshold(drop.p);
    ASSERT_EQ(std::isnan(y[i]), kept) << i;
  }
}

TYPED_TEST(FusedKernels, ActivationsMatchTheirDefinitions) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  for (const double p : {0.0, 0.4})
    for (const int64_t n : kAwkwardCounts) {
      const Dropout drop{p, 9};
      const auto x = draw<T>(n, 4, 3), g = draw<T>(n, 5);
      std::vector<T> y(n), grad(n);
      const auto keep = [&](int64_t i, T value) { return p > 0 ? dropped(drop, i, value) : value; };
      activation_dropout(x.data(), y.data(), n, Activation::kSwish, drop, in_chunks(2));
      activation_dropout_backward(
          x.data(), g.data(), grad.data(), n, Activation::kSwish, drop, serial);
      for (int64_t i = 0; i < n; ++i) {
        const double v = x[i], s = 1 / (1 + std::exp(-v));
        ASSERT_NEAR(y[i], keep(i, static_cast<T>(v * s)), 10 * tolerance);
        ASSERT_NEAR(grad[i], keep(i, g[i]) * (s + v * s * (1 - s)), 10 * tolerance);
      }
      activation_dropout(x.data(), y.data(), n, Activation::kRelu, drop, serial);
      activation_dropout_backward(
          y.data(), g.data(), grad.data(), n, Activation::kRelu, drop, serial);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i], keep(i, std::max(x[i], T{0})));
        ASSERT_EQ(grad[i], x[i] > 0 ? keep(i, g[i]) : T{0});
      }
    }
}

TYPED_TEST(FusedKernels, ReluPassesNanOn) {
  using T = TypeParam;
  const std::vector<T> x(37, std::numeric_limits<T>::quiet_NaN());
  std::vector<T> y(37);
  activation_dropout(x.data(), y.data(), 37, Activation::kRelu, Dropout{}, serial);
  for (const T value : y)
    EXPECT_TRUE(std::isnan(value));
  // And its gradient: where the value is not a number, the network is not at 0.
  const std::vector<T> g(37, T{3});
  std::vector<T> grad(37);
  activation_dropout_backward(
      y.data(), g.data(), grad.data(), 37, Activation::kRelu, Dropout{}, serial);
  EXPECT_EQ(grad, g);
}

TYPED_TEST(FusedKernels, GluMatchesItsDefinitionAndZeroesPadding) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  for (const int64_t C : {1, 3, 16, 33}) {
    const std::vector<int64_t> lengths = {5, 0, 2};
    const GluShape shape{15, C, 5, lengths.data()};
    const auto x = draw<T>(15 * 2 * C, 6, 2), g = draw<T>(15 * C, 7);
    std::vector<T> y(15 * C, 9), grad(15 * 2 * C, 9);
    glu(x.data(), y.data(), shape, in_chunks(4));
    glu_backward(x.data(), g.data(), grad.data(), shape, in_chunks(4));
    for (int64_t r = 0; r < 15; ++r)
      for (int64_t c = 0; c < C; ++c) {
        const bool valid = r % 5 < lengths[r / 5];
        const double a = x[r * 2 * C + c], b = x[r * 2 * C + C + c];
        const double s = 1 / (1 + std::exp(-b)), go = g[r * C + c];
        EXPECT_NEAR(y[r * C + c], valid ? a * s : 0, tolerance * 5);
        EXPECT_NEAR(grad[r * 2 * C + c], valid ? go * s : 0, tolerance * 5);
        EXPECT_NEAR(grad[r * 2 * C + C + c], valid ? go * a * s * (1 - s) : 0, tolerance * 5);
        if (!valid) {
          EXPECT_EQ(y[r * C + c], 0);
        }
      }
  }
}

/// Sums of one part must not depend on who computes it.
TYPED_TEST(FusedKernels, LayerNormDoesNotDependOnThePartition) {
  using T = TypeParam;
  const int64_t rows = 517, C = 37;
  const auto x = draw<T>(rows * C, 8), g = draw<T>(rows * C, 9);
  const auto weight = draw<T>(C, 10), bias = draw<T>(C, 11);
  const auto run = [&](const ParallelFor& threads) {
    std::vector<T> out((3 * rows + 2) * C + rows + rows * C);
    T* y = out.data();
    T* normalized = y + rows * C;
    T* grad_z = normalized + rows * C;
    T* grad_x = grad_z + rows * C;
    T* sums = grad_x + rows * C;
    T* rstd = sums + 2 * C;
    LayerNormForward<T> forward;
    forward.rows = rows;
    forward.channels = C;
    forward.x = x.data();
    forward.residual = g.data();
    forward.weight = weight.data();
    forward.bias = bias.data();
    forward.y = y;
    forward.normalized = normalized;
    forward.rstd = rstd;
    forward.drop = {0.2, 12};
    layer_norm(forward, threads);
    LayerNormBackward<T> backward;
    backward.rows = rows;
    backward.channels = C;
    backward.grad_y = g.data();
    backward.normalized = normalized;
    backward.rstd = rstd;
    backward.weight = weight.data();
    backward.grad_z = grad_z;
    backward.grad_x = grad_x;
    backward.grad_weight = sums;
    backward.grad_bias = sums + C;
    backward.drop = forward.drop;
    layer_norm_backward(backward, threads);
    return out;
  };
  const auto want = run(serial);
  for (const auto& threads : {ParallelFor(one_by_one), in_chunks(2), in_chunks(5)})
    EXPECT_EQ(run(threads), want);
}

TYPED_TEST(FusedKernels, LayerNormTakesNoResidualForZeros) {
  using T = TypeParam;
  const int64_t rows = 5, C = 37;
  const auto x = draw<T>(rows * C, 8), weight = draw<T>(C, 10);
  const std::vector<T> zeros(x.size());
  for (const double p : {0.0, 0.2}) {
    LayerNormForward<T> pass;
    pass.rows = rows;
    pass.channels = C;
    pass.x = x.data();
    pass.weight = weight.data();
    pass.bias = weight.data();
    pass.drop = {p, 12};
    std::vector<T> y(x.size()), want(x.size());
    pass.y = y.data();
    layer_norm(pass, serial);
    pass.residual = zeros.data();
    pass.y = want.data();
    layer_norm(pass, serial);
    EXPECT_EQ(y, want) << p;
  }
}

/// Also those that are left over where parts are equal.
TYPED_TEST(FusedKernels, GradientsOfLayerNormCountEveryRow) {
  using T = TypeParam;
  const int64_t rows = 517, C = 37;
  const auto g = draw<T>(rows * C, 9), normalized = draw<T>(rows * C, 8);
  std::vector<T> sums(2 * C);
  LayerNormBackward<T> pass;
  pass.rows = rows;
  pass.channels = C;
  pass.grad_y = g.data();
  pass.normalized = normalized.data();
  pass.weight = g.data();
  pass.grad_weight = sums.data();
  pass.grad_bias = sums.data() + C;
  layer_norm_backward(pass, serial);
  for (int64_t c = 0; c < C; ++c) {
    double weight = 0, bias = 0;
    for (int64_t i = c; i < rows * C; i += C) {
      weight += double{g[i]} * normalized[i];
      bias += g[i];
    }
    EXPECT_NEAR(sums[c], weight, 1e-3);
    EXPECT_NEAR(sums[C + c], bias, 1e-3);
  }
}

TYPED_TEST(FusedKernels, CrossEntropyMatchesPlainSums) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 3e-6 : 1e-12;
  const SmoothedLoss smoothed{0.85, 0.01};
  for (const int64_t V : {1, 2, 15, 16, 17, 511, 513, 1500}) {
    const int64_t rows = 3;
    const auto logits = draw<T>(rows * V, 13, 5);
    const std::vector<int64_t> target = {0, V / 2, V - 1};
    std::vector<T> x = logits;
    std::vector<double> loss(rows), nll(rows);
    cross_entropy<T>(
        {rows, V, x.data(), target.data(), loss.data(), nll.data(), true}, smoothed, in_chunks(2));
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = logits.data() + r * V;
      double sum = 0, total = 0;
      for (int64_t i = 0; i < V; ++i)
        sum += std::exp(static_cast<double>(row[i]));
      for (int64_t i = 0; i < V; ++i)
        total += std::log(sum) - row[i];
      const double want_nll = std::log(sum) - row[target[r]];
      const double want = 0.85 * want_nll + 0.01 * total;
      EXPECT_NEAR(nll[r], want_nll, tolerance * 10) << V;
      EXPECT_NEAR(loss[r], want, tolerance * std::max(1.0, want)) << V;
      for (int64_t i = 0; i < V; ++i) {
        const double p = std::exp(static_cast<double>(row[i])) / sum;
        const double want_gradient = p * (0.85 + 0.01 * V) - 0.01 - (i == target[r] ? 0.85 : 0.0);
        ASSERT_NEAR(x[r * V + i], want_gradient, tolerance * (1 + 0.01 * V)) << i << " of " << V;
      }
    }
  }
}

TYPED_TEST(FusedKernels, CrossEntropyShowsNanAndInfinity) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  for (const T bad : {nan, infinity})
    for (const int64_t V : {5, 40, 600})
      for (const int64_t place : {int64_t{0}, V / 2, V - 1}) {
        auto x = draw<T>(V, 14);
        x[place] = bad;
        const int64_t target = 1;
        double loss = 0, nll = 0;
        cross_entropy<T>({1, V, x.data(), &target, &loss, &nll, true}, {0.9, 0.1 / V}, serial);
        EXPECT_FALSE(std::isfinite(loss)) << bad << " at " << place;
        EXPECT_FALSE(std::isfinite(nll)) << bad << " at " << place;
      }
}

TYPED_TEST(FusedKernels, CrossEntropyOfAMaskedWordIsFiniteWithoutSmoothing) {
  using T = TypeParam;
  std::vector<T> x = {1, -std::numeric_limits<T>::infinity(), 2};
  const int64_t target = 2;
  double loss = 0, nll = 0;
  cross_entropy<T>({1, 3, x.data(), &target, &loss, &nll, true}, {1, 0}, serial);
  EXPECT_NEAR(loss, std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_EQ(x[1], 0);
}

}  // namespace
}  // namespace seqconv::internal::kernels
