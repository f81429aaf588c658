#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_support.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/exp_test.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/common/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

struct Tables {
  /// Whole vectors of values, as exps_of_moderate() or exps_of_negative() have
  /// them.
  template <class A>
  static void exp(std::vector<A>& values, bool negative) {
    for (size_t i = 0; i < values.size(); i += kLanes<A>) {
      Vec<A> x[1] = {load(values.data() + i)};
      negative ? exps_of_negative<A>(x) : exps_of_moderate<A>(x);
      hn::StoreU(x[0], Tag<A>(), values.data() + i);
    }
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {
namespace {

class Exp : public ::testing::TestWithParam<Isa> {
 protected:
  template <class A>
  static void exp(std::vector<A>& values, bool negative) {
    SEQCONV_CHOOSE(GetParam(), exp(values, negative));
  }

  /// Of 8,016 values between the two.
  template <class A>
  static void expect_exp(double min, double max, double relative) {
    std::vector<A> values;
    for (int i = 0; i < 8000; ++i)
      values.push_back(static_cast<A>(min + i * (max - min) / 8000));
    values.insert(values.end(), 16, static_cast<A>(max));
    const std::vector<A> x = values;
    for (const bool negative : {false, true}) {
      if (negative && max > 0)
        continue;
      values = x;
      exp(values, negative);
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = std::exp(static_cast<double>(x[i]));
        ASSERT_NEAR(double(values[i]) / want, 1, relative) << x[i];
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, Exp, ::testing::ValuesIn(supported_isas()), testing::isa_name);

TEST_P(Exp, IsExactToTwoUnitsOfTheLastPlace) {
  expect_exp<float>(-80, 80, 2.4e-7);
  expect_exp<float>(-87, 0, 2.4e-7);
  expect_exp<double>(-600, 600, 1e-15);
  expect_exp<double>(-708, 0, 1e-15);
}

TEST_P(Exp, OfWhatVanishesIsZero) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float low : {-87.1f, -1e3f, -1e30f, -inf})
    for (const size_t at : {0, 17, 47}) {
      std::vector<float> values(48, 0.0f);
      values[at] = low;
      exp(values, /*negative=*/true);
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], i == at ? 0 : 1, i == at ? 0 : 2.4e-7) << low;
    }
}

TEST_P(Exp, OfNaNIsNaN) {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7fc00001u})
    for (const bool negative : {false, true}) {
      std::vector<float> values(48, std::bit_cast<float>(bits));
      exp(values, negative);
      for (const float value : values)
        EXPECT_TRUE(std::isnan(value)) << bits;
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels
#endif
