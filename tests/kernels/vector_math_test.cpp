#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_support.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_math_test.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/common/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

struct Tables {
  template <class T>
  static void exp(const std::vector<T>& x, std::vector<T>& y) {
#pragma omp simd
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = exp_of(x[i]);
  }
  template <class T>
  static void sigmoid(const std::vector<T>& x, std::vector<T>& y) {
#pragma omp simd
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = HWY_NAMESPACE::sigmoid(x[i]);
  }
  template <class T>
  static void tanh(const std::vector<T>& x, std::vector<T>& y) {
#pragma omp simd
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = tanh_of(x[i]);
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {
namespace {

class VectorMath : public ::testing::TestWithParam<Isa> {
 protected:
  template <class T>
  static void exp(const std::vector<T>& x, std::vector<T>& y) {
    SEQCONV_CHOOSE(GetParam(), exp(x, y));
  }
  template <class T>
  static void sigmoid(const std::vector<T>& x, std::vector<T>& y) {
    SEQCONV_CHOOSE(GetParam(), sigmoid(x, y));
  }
  template <class T>
  static void tanh(const std::vector<T>& x, std::vector<T>& y) {
    SEQCONV_CHOOSE(GetParam(), tanh(x, y));
  }
  template <class T>
  static void expect_within(
      long double bound,
      const std::vector<T>& x,
      const std::vector<T>& y,
      long double (*of)(long double));
  template <class T>
  static void expect_exp_within(long double bound, T low, T high, int64_t count);
  template <class T>
  static void expect_tanh_within(long double bound);
  template <class T>
  static void expect_limits();
};

INSTANTIATE_TEST_SUITE_P(
    Isas, VectorMath, ::testing::ValuesIn(supported_isas()), testing::isa_name);

/// |got - want| in units of the last place of T at `want`.
template <class T>
long double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  const T next = std::nextafter(rounded, std::numeric_limits<T>::infinity());
  return std::fabs(static_cast<long double>(got) - want) /
      (static_cast<long double>(next) - rounded);
}

template <class T>
void VectorMath::expect_within(
    long double bound,
    const std::vector<T>& x,
    const std::vector<T>& y,
    long double (*of)(long double)) {
  long double worst = 0;
  T where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double error = ulps(y[i], of(static_cast<long double>(x[i])));
    if (error > worst) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, bound) << "at " << where;
}

/// `count` numbers from `low` on, evenly, up to `high`.
template <class T>
std::vector<T> evenly(T low, T high, int64_t count) {
  std::vector<T> x(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = low + (high - low) * static_cast<T>(i) / static_cast<T>(count);
  return x;
}

template <class T>
void VectorMath::expect_exp_within(long double bound, T low, T high, int64_t count) {
  const std::vector<T> x = evenly(low, high, count);
  std::vector<T> y(x.size());
  exp(x, y);
  expect_within<T>(bound, x, y, std::exp);
}

template <class T>
void VectorMath::expect_tanh_within(long double bound) {
  // Its values near 0 are as small as x: every binade of them.
  for (T high = 32; high > T(1e-30); high /= 2) {
    std::vector<T> x = evenly(high / 2, high, 5001);
    for (size_t i = 0; i < x.size(); i += 2)
      x[i] = -x[i];
    std::vector<T> y(x.size());
    tanh(x, y);
    expect_within<T>(bound, x, y, std::tanh);
  }
}

TEST_P(VectorMath, FloatExpIsWithinOneAndAQuarterUnitsOfTheLastPlace) {
  expect_exp_within<float>(1.25L, -87.3f, 88.7f, 400001);
  expect_exp_within<float>(1.25L, -1.0f, 1.0f, 200001);
}

TEST_P(VectorMath, FloatExpReachesTheSubnormalNumbers) {
  expect_exp_within<float>(1.0L, -103.0f, -87.3f, 20001);
}

TEST_P(VectorMath, DoubleExpIsWithinTwoUnitsOfTheLastPlace) {
  expect_exp_within<double>(2.0L, -708.0, 709.7, 200001);
  expect_exp_within<double>(2.0L, -1.0, 1.0, 200001);
}

TEST_P(VectorMath, TanhIsWithinTwoAndAHalfUnitsOfTheLastPlace) {
  expect_tanh_within<float>(2.5L);
  expect_tanh_within<double>(2.5L);
}

template <class T>
void VectorMath::expect_limits() {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> x = {0, infinity, 1000, -infinity, -1000};
  const std::vector<T> nan = {std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> y(x.size()), nothing(1);
  exp(x, y);
  EXPECT_EQ(y, (std::vector<T>{1, infinity, infinity, 0, 0}));
  sigmoid(x, y);
  EXPECT_EQ(y, (std::vector<T>{0.5, 1, 1, 0, 0}));
  tanh(x, y);
  EXPECT_EQ(y, (std::vector<T>{0, 1, 1, -1, -1}));
  exp(nan, nothing);
  EXPECT_TRUE(std::isnan(nothing[0]));
  tanh(nan, nothing);
  EXPECT_TRUE(std::isnan(nothing[0]));
  sigmoid(nan, nothing);
  EXPECT_TRUE(std::isnan(nothing[0]));
}

TEST_P(VectorMath, LimitsAndNanPass) {
  expect_limits<float>();
  expect_limits<double>();
}

TEST_P(VectorMath, SigmoidMatchesItsDefinition) {
  std::vector<double> x;
  for (double value = -80; value < 80; value += 0.0137)
    x.push_back(value);
  const std::vector<float> singles(x.begin(), x.end());
  std::vector<double> y(x.size());
  std::vector<float> single(x.size());
  sigmoid(x, y);
  sigmoid(singles, single);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = 1.0 / (1.0 + std::exp(-x[i]));
    EXPECT_NEAR(y[i], want, 4e-16 * want + 1e-300);
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(singles[i])));
    EXPECT_NEAR(single[i], exact, 3e-7 * exact);
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
#endif
