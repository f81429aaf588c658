#include <gtest/gtest.h>

#include <limits>

#include "kernels/conv/conv_kernels.h"
#include "kernels/kernel_support.h"

/// Loops that make taps of logits, where the operators' tests cannot see.
namespace seqconv::internal::kernels {
namespace {

using testing::draw;
using testing::place;

class ConvTaps : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvTaps, ::testing::ValuesIn(supported_isas()), testing::isa_name);

/// Ratios of softmax({x, 0}) are e^x, but for a rounding of either.
template <class A>
void expect_ratios(Isa isa, double max, double relative) {
  constexpr int64_t kCount = 8001;
  std::vector<A> logits;
  for (int64_t i = 0; i < kCount; ++i) {
    logits.push_back(static_cast<A>(double(i - kCount / 2) * max / 4000));
    logits.push_back(0);
  }
  std::vector<A> w(place(kCount * tap_pitch(2) + kTapSlack));
  conv_kernels<A, A>(isa).softmax(
      {.logits = logits.data(),
       .logit_stride = 2,
       .rows = kCount,
       .heads = 1,
       .kernel_size = 2,
       .w = w.data()});
  for (int64_t i = 0; i < kCount; ++i) {
    const A* const taps = w.data() + i * tap_pitch(2);
    const double want = std::exp(double(logits[place(2 * i)]));
    ASSERT_NEAR(double(taps[0]) / double(taps[1]) / want, 1, relative) << logits[place(2 * i)];
    ASSERT_EQ(taps[2], 0);
  }
}

TEST_P(ConvTaps, SoftmaxHasTheRatiosOfExponentials) {
  expect_ratios<float>(GetParam(), 80, 2.4e-7 + 1.2e-7);
  expect_ratios<double>(GetParam(), 600, 1e-15 + 2.3e-16);
}

/// Segments have the same bits among others of their rows and among those of
/// their head.
void expect_same_softmax(Isa isa, int64_t K, std::mt19937& random) {
  constexpr int64_t kRows = 7, kHeads = 5, kAll = 6;
  const int64_t pitch = tap_pitch(K);
  const auto logits = draw<float>(random, kRows * kAll * K);
  const auto softmax = [&](int64_t head, int64_t heads) {
    std::vector<float> w(place(kRows * heads * pitch + kTapSlack));
    conv_kernels<float, float>(isa).softmax(
        {.logits = logits.data() + head * K,
         .logit_stride = kAll * K,
         .rows = kRows,
         .heads = heads,
         .kernel_size = K,
         .w = w.data()});
    return w;
  };
  const auto all = softmax(0, kAll), some = softmax(1, kHeads);
  for (int64_t h = 0; h < kAll; ++h) {
    const auto one = softmax(h, 1);
    for (int64_t t = 0; t < kRows; ++t)
      for (int64_t j = 0; j < pitch; ++j) {
        const float want = all[place((t * kAll + h) * pitch + j)];
        ASSERT_EQ(one[place(t * pitch + j)], want) << K << " " << h << " " << j;
        if (h > 0) {
          ASSERT_EQ(some[place((t * kHeads + h - 1) * pitch + j)], want)
              << K << " " << h << " " << j;
        }
      }
  }
}

TEST_P(ConvTaps, SoftmaxHasTheSameBitsForAnyNumberOfHeads) {
  for (const int64_t K : {2, 3, 7, 9, 15, 17, 31, 63, 65})
    expect_same_softmax(GetParam(), K, random_);
}

/// Softmax of segments of K logits.
std::vector<float> softmax_of(Isa isa, const std::vector<float>& logits, int64_t K) {
  const int64_t segments = static_cast<int64_t>(logits.size()) / K;
  std::vector<float> w(place(segments * tap_pitch(K) + kTapSlack));
  conv_kernels<float, float>(isa).softmax(
      {.logits = logits.data(),
       .logit_stride = segments * K,
       .rows = 1,
       .heads = segments,
       .kernel_size = K,
       .w = w.data()});
  return w;
}

TEST_P(ConvTaps, SoftmaxTakesEveryValue) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto w = softmax_of(GetParam(), {1000, 999, -inf, -1e30f, -inf, 3, -inf, -inf}, 4);
  const float e = std::exp(-1.0f);
  EXPECT_FLOAT_EQ(w[0], 1 / (1 + e));
  EXPECT_FLOAT_EQ(w[1], e / (1 + e));
  EXPECT_EQ(w[2], 0);
  EXPECT_EQ(w[3], 0);
  EXPECT_EQ(w[4], 0);
  EXPECT_EQ(w[5], 1);
}

TEST_P(ConvTaps, NaNStaysInItsSegment) {
  for (const int64_t K : {1, 2, 3, 7, 9, 15, 17, 31, 63, 65})
    for (int64_t at = 0; at < 5 * K; ++at) {
      std::vector<float> logits(place(5 * K), 1.0f);
      logits[place(at)] = std::nanf("");
      const auto w = softmax_of(GetParam(), logits, K);
      for (int64_t n = 0; n < 5; ++n)
        for (int64_t j = 0; j < K; ++j)
          ASSERT_EQ(std::isnan(w[place(n * tap_pitch(K) + j)]), n == at / K)
              << K << " " << at << " " << n << " " << j;
    }
}

TEST_P(ConvTaps, ASingleTapIsOne) {
  for (const float logit : {0.0f, 1.0f, -90.0f, 1e30f})
    EXPECT_EQ(softmax_of(GetParam(), {logit, 2, 3}, 1)[0], 1.0f) << logit;
}

TEST_P(ConvTaps, EqualLogitsAreEqualShares) {
  constexpr int64_t K = 6144;
  for (const float logit : {-80.0f, 80.0f, 1e4f}) {
    const auto w = softmax_of(GetParam(), std::vector<float>(K, logit), K);
    for (int64_t j = 0; j < K; ++j)
      ASSERT_FLOAT_EQ(w[place(j)], 1.0f / K) << logit << " " << j;
  }
}

TEST_P(ConvTaps, SoftmaxOfLowValuesKnowsNoOthers) {
  for (const int64_t K : {1, 3, 5, 15, 17, 31, 70}) {
    const auto w = softmax_of(GetParam(), std::vector<float>(place(3 * K), -200.0f), K);
    for (int64_t n = 0; n < 3; ++n)
      for (int64_t j = 0; j < K; ++j)
        EXPECT_FLOAT_EQ(w[place(n * tap_pitch(K) + j)], 1.0f / K)
            << "K " << K << ", segment " << n << ", tap " << j;
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
