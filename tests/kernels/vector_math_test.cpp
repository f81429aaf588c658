#include "kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace seqconv::kernels {
namespace {

/// |got - want| in units of the last place of T at `want`.
template <class T>
long double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  const T next = std::nextafter(rounded, std::numeric_limits<T>::infinity());
  return std::fabs(static_cast<long double>(got) - want) /
      (static_cast<long double>(next) - rounded);
}

template <class T>
SEQCONV_MULTIVERSION void exp_all(const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = vector_exp(x[i]);
}

template <class T>
void expect_exp_within(long double bound, T low, T high, int64_t count) {
  std::vector<T> x(count), y(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = low + (high - low) * static_cast<T>(i) / static_cast<T>(count);
  exp_all(x.data(), y.data(), count);
  long double worst = 0;
  T where = 0;
  for (int64_t i = 0; i < count; ++i) {
    const long double error =
        ulps(y[i], std::exp(static_cast<long double>(x[i])));
    if (error > worst) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, bound) << "at " << where;
}

TEST(VectorMath, FloatExpIsWithinOneAndAQuarterUnitsOfTheLastPlace) {
  expect_exp_within<float>(1.25L, -87.3f, 88.7f, 400001);
  expect_exp_within<float>(1.25L, -1.0f, 1.0f, 200001);
}

TEST(VectorMath, FloatExpReachesTheSubnormalNumbers) {
  expect_exp_within<float>(1.0L, -103.0f, -87.3f, 20001);
}

TEST(VectorMath, DoubleExpIsWithinTwoUnitsOfTheLastPlace) {
  expect_exp_within<double>(2.0L, -708.0, 709.7, 200001);
  expect_exp_within<double>(2.0L, -1.0, 1.0, 200001);
}

template <class T>
void expect_limits() {
  const T infinity = std::numeric_limits<T>::infinity();
  EXPECT_EQ(vector_exp<T>(0), T{1});
  EXPECT_EQ(vector_exp<T>(infinity), infinity);
  EXPECT_EQ(vector_exp<T>(1000), infinity);
  EXPECT_EQ(vector_exp<T>(-infinity), T{0});
  EXPECT_EQ(vector_exp<T>(-1000), T{0});
  EXPECT_TRUE(std::isnan(vector_exp(std::numeric_limits<T>::quiet_NaN())));
  EXPECT_EQ(vector_sigmoid<T>(0), T{0.5});
  EXPECT_EQ(vector_sigmoid<T>(1000), T{1});
  EXPECT_EQ(vector_sigmoid<T>(-1000), T{0});
}

TEST(VectorMath, LimitsAndNanPass) {
  expect_limits<float>();
  expect_limits<double>();
}

TEST(VectorMath, SigmoidMatchesItsDefinition) {
  for (double x = -80; x < 80; x += 0.0137) {
    const double want = 1.0 / (1.0 + std::exp(-x));
    EXPECT_NEAR(vector_sigmoid(x), want, 4e-16 * want + 1e-300);
    const float single = static_cast<float>(x);
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(single)));
    EXPECT_NEAR(vector_sigmoid(single), exact, 3e-7 * exact);
  }
}

}  // namespace
}  // namespace seqconv::kernels
