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
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

struct Tables {
  /// Whole vectors of values.
  template <class A>
  static bool exp(std::vector<A>& values) {
    ModerateBound<A> bound;
    for (size_t i = 0; i < values.size(); i += kLanes<A>) {
      Vec<A> x[1] = {load(values.data() + i)};
      bound.add(x);
      exps_of_moderate<A>(x);
      hn::StoreU(x[0], Tag<A>(), values.data() + i);
    }
    return bound.holds();
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {
namespace {

class ModerateExp : public ::testing::TestWithParam<Isa> {
 protected:
  template <class A>
  static bool exp(std::vector<A>& values) {
    SEQCONV_CHOOSE(GetParam(), exp(values));
  }

  template <class A>
  static void expect_exp(double max, double relative) {
    std::vector<A> values;
    for (int i = -4000; i < 4000; ++i)
      values.push_back(static_cast<A>(i * max / 4000));
    values.insert(values.end(), 16, static_cast<A>(max));
    const std::vector<A> x = values;
    ASSERT_TRUE(exp(values));
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(static_cast<double>(x[i]));
      ASSERT_NEAR(double(values[i]) / want, 1, relative) << x[i];
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    ModerateExp,
    ::testing::ValuesIn(supported_isas()),
    testing::isa_name);

TEST_P(ModerateExp, IsExactToTwoUnitsOfTheLastPlace) {
  expect_exp<float>(80, 2.4e-7);
  expect_exp<double>(600, 1e-15);
}

TEST_P(ModerateExp, RefusesWhatItCannotDo) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {80.1f, -80.1f, inf, -inf, std::nanf("")})
    for (const size_t at : {0, 17, 47}) {
      std::vector<float> values(48, 1.0f);
      values[at] = bad;
      EXPECT_FALSE(exp(values)) << bad;
    }
}

}  // namespace
}  // namespace seqconv::kernels
#endif
