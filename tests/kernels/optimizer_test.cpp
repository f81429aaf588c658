#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"
#include "kernels/parallel.h"
#include "support/golden_case.h"

namespace seqconv::internal::kernels {
namespace {

using seqconv::internal::testing::golden_error;
using seqconv::internal::testing::golden_files;
using seqconv::internal::testing::GoldenCase;
using testing::in_chunks;
using testing::one_by_one;
using testing::serial;

template <class T>
constexpr double kBound = sizeof(T) == 8 ? 1e-12 : 1e-5;

template <class T>
std::vector<T> cast(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}

/// Row `row` of a [S, N] tensor.
std::vector<double> row_of(const std::vector<double>& all, int64_t row, size_t n) {
  return {all.begin() + row * n, all.begin() + (row + 1) * n};
}

template <class T>
void check_adam(const GoldenCase& golden) {
  auto p = cast<T>(golden.values("param"));
  const size_t n = p.size();
  std::vector<T> m(n), v(n);
  const auto lr = golden.values("lr");
  for (size_t s = 0; s < lr.size(); ++s) {
    const auto g = cast<T>(row_of(golden.values("grads"), s, n));
    AdamOptions options;
    options.lr = lr[s];
    options.beta1 = golden.number("beta1");
    options.beta2 = golden.number("beta2");
    options.epsilon = golden.number("eps");
    options.weight_decay = golden.number("weight_decay");
    options.step = static_cast<int64_t>(s) + 1;
    adam_step(p.data(), g.data(), m.data(), v.data(), n, options, serial);
    const auto want = [&](const char* name) { return row_of(golden.values(name), s, n); };
    EXPECT_LE(golden_error(p.data(), want("params")), kBound<T>) << s;
    EXPECT_LE(golden_error(m.data(), want("exp_avg")), kBound<T>) << s;
    EXPECT_LE(golden_error(v.data(), want("exp_avg_sq")), kBound<T>) << s;
  }
}

template <class T>
void check_nag(const GoldenCase& golden) {
  auto p = cast<T>(golden.values("param"));
  const size_t n = p.size();
  std::vector<T> buffer(n);
  const auto lr = golden.values("lr");
  for (size_t s = 0; s < lr.size(); ++s) {
    const auto g = cast<T>(row_of(golden.values("grads"), s, n));
    NagOptions options;
    options.lr = lr[s];
    options.previous_lr = s == 0 ? 0 : lr[s - 1];
    options.momentum = golden.number("momentum");
    options.weight_decay = golden.number("weight_decay");
    nag_step(p.data(), g.data(), buffer.data(), n, options, serial);
    const auto want = [&](const char* name) { return row_of(golden.values(name), s, n); };
    EXPECT_LE(golden_error(p.data(), want("params")), kBound<T>) << s;
    EXPECT_LE(golden_error(buffer.data(), want("momentum_buffer")), kBound<T>) << s;
  }
}

template <class T>
void check_clip(const GoldenCase& golden) {
  std::vector<T> flat;
  std::vector<double> want;
  for (int i = 0; golden.contains("grad." + std::to_string(i)); ++i) {
    const auto part = golden.values("grad." + std::to_string(i));
    const auto clipped = golden.values("clipped." + std::to_string(i));
    flat.insert(flat.end(), part.begin(), part.end());
    want.insert(want.end(), clipped.begin(), clipped.end());
  }
  const double norm =
      std::sqrt(squared_norm(flat.data(), static_cast<int64_t>(flat.size()), serial));
  EXPECT_LE(golden_error(&norm, golden.values("total_norm")), 1e-12);
  const double factor = clip_factor(norm, golden.number("max_norm"));
  EXPECT_LE(golden_error(&factor, golden.values("factor")), 1e-12);
  for (T& value : flat)
    value *= static_cast<T>(factor);
  EXPECT_LE(golden_error(flat.data(), want), kBound<T>);
}

TEST(OptimizerGolden, AdamMatchesEveryCase) {
  for (const auto& file : golden_files("adam")) {
    const GoldenCase golden(file);
    SCOPED_TRACE(file.filename());
    check_adam<double>(golden);
    check_adam<float>(golden);
  }
}

TEST(OptimizerGolden, NagMatchesEveryCase) {
  for (const auto& file : golden_files("nag")) {
    SCOPED_TRACE(file.filename());
    check_nag<double>(GoldenCase(file));
    check_nag<float>(GoldenCase(file));
  }
}

TEST(OptimizerGolden, ClippingMatchesEveryCase) {
  for (const auto& file : golden_files("clip_grad_norm")) {
    SCOPED_TRACE(file.filename());
    check_clip<double>(GoldenCase(file));
    check_clip<float>(GoldenCase(file));
  }
}

std::vector<float> noise(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values)
    value = normal(generator);
  return values;
}

TEST(Optimizer, GradientScaleEqualsScaledGradients) {
  const int64_t n = 1003;
  const auto g = noise(n, 1);
  auto scaled = g;
  for (float& value : scaled)
    value *= 0.25f;  // exact in binary
  const auto start = noise(n, 2);
  AdamOptions adam;
  adam.lr = 0.01;
  NagOptions nag;
  nag.lr = 0.01;
  const auto run = [&](const std::vector<float>& grad, double factor) {
    auto p = start, q = start;
    std::vector<float> m(n), v(n), buffer(n);
    adam.grad_scale = nag.grad_scale = factor;
    adam_step(p.data(), grad.data(), m.data(), v.data(), n, adam, serial);
    nag_step(q.data(), grad.data(), buffer.data(), n, nag, serial);
    p.insert(p.end(), q.begin(), q.end());
    return p;
  };
  EXPECT_EQ(run(g, 0.25), run(scaled, 1.0));
}

TEST(Optimizer, StepsDoNotDependOnThePartition) {
  const int64_t n = 100003;
  const auto g = noise(n, 3);
  const auto run = [&](const ParallelFor& threads) {
    auto p = noise(n, 4);
    std::vector<float> m(n), v(n), buffer(n);
    AdamOptions adam;
    adam.lr = 0.01;
    adam.weight_decay = 0.1;
    adam_step(p.data(), g.data(), m.data(), v.data(), n, adam, threads);
    NagOptions nag;
    nag.lr = 0.01;
    nag_step(p.data(), g.data(), buffer.data(), n, nag, threads);
    return std::pair(p, squared_norm(p.data(), n, threads));
  };
  const auto want = run(serial);
  EXPECT_EQ(run(in_chunks(2)), want);
  EXPECT_EQ(run(in_chunks(7)), want);
  EXPECT_EQ(run(one_by_one), want);
}

TEST(Optimizer, SquaredNormIsExactEnoughAndFindsEveryBadElement) {
  for (const int64_t n : {0, 1, 17, 16384, 16385, 50001}) {
    auto x = noise(n, 5);
    double want = 0;
    for (const float value : x)
      want += static_cast<double>(value) * value;
    EXPECT_NEAR(squared_norm(x.data(), n, serial), want, 1e-12 * want);
    for (const int64_t place : {int64_t{0}, n / 2, n - 1}) {
      if (n == 0)
        continue;
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(),
            std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        auto y = x;
        y[place] = bad;
        EXPECT_FALSE(std::isfinite(squared_norm(y.data(), n, serial)));
      }
      auto y = x;
      y[place] = std::numeric_limits<float>::max();
      EXPECT_TRUE(std::isfinite(squared_norm(y.data(), n, serial)));
    }
  }
}

TEST(Optimizer, ClipFactorIsOneBelowTheLimitAndWhenOff) {
  EXPECT_EQ(clip_factor(3.0, 0), 1.0);
  EXPECT_EQ(clip_factor(3.0, 4.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_factor(3.0, 1.5), 1.5 / (3.0 + 1e-6));
}

TEST(Optimizer, AdamWantsAStepFromOne) {
  float p = 0, g = 0, m = 0, v = 0;
  AdamOptions options;
  options.step = 0;
  try {
    adam_step(&p, &g, &m, &v, 1, options, serial);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "adam_step: step must be >= 1, but got 0");
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
