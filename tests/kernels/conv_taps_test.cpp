#include <gtest/gtest.h>

#include <limits>

#include "kernels/conv/conv_kernels.h"
#include "kernels/kernel_support.h"

/// Loops that make taps of logits, where the operators' tests cannot see.
namespace seqconv::kernels {
namespace {

using testing::draw;
using testing::place;

class ConvTaps : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    ConvTaps,
    ::testing::ValuesIn(supported_isas()),
    testing::isa_name);

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
  ASSERT_TRUE((conv_kernels<A, A>(isa).softmax(
      {.logits = logits.data(),
       .logit_stride = 2,
       .rows = kCount,
       .heads = 1,
       .kernel_size = 2,
       .w = w.data()})));
  for (int64_t i = 0; i < kCount; ++i) {
    const A* const taps = w.data() + i * tap_pitch(2);
    const double want = std::exp(double(logits[place(2 * i)]));
    ASSERT_NEAR(double(taps[0]) / double(taps[1]) / want, 1, relative)
        << logits[place(2 * i)];
    ASSERT_EQ(taps[2], 0);
  }
}

TEST_P(ConvTaps, QuickSoftmaxHasTheRatiosOfExponentials) {
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
    EXPECT_TRUE((conv_kernels<float, float>(isa).softmax(
        {.logits = logits.data() + head * K,
         .logit_stride = kAll * K,
         .rows = kRows,
         .heads = heads,
         .kernel_size = K,
         .w = w.data()})));
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

/// Softmax of a block of logits of which one may be something else than 1.
class QuickSoftmax {
 public:
  QuickSoftmax(Isa isa, int64_t K)
      : K_(K),
        softmax_(conv_kernels<float, float>(isa).softmax),
        logits_(place(kRows * kHeads * K), 1.0f),
        w_(place(kRows * kHeads * tap_pitch(K) + kTapSlack)) {}

  int64_t count() const { return kRows * kHeads * K_; }
  bool takes(float value, int64_t at) {
    logits_[place(at)] = value;
    const bool taken = softmax_(
        {.logits = logits_.data(),
         .logit_stride = kHeads * K_,
         .rows = kRows,
         .heads = kHeads,
         .kernel_size = K_,
         .w = w_.data()});
    logits_[place(at)] = 1.0f;
    return taken;
  }

 private:
  static constexpr int64_t kRows = 5, kHeads = 3;
  int64_t K_;
  decltype(ConvKernels<float, float>::softmax) softmax_;
  std::vector<float> logits_, w_;
};

TEST_P(ConvTaps, QuickSoftmaxRefusesWhatItCannotDo) {
  for (const int64_t K : {2, 3, 7, 9, 15, 17, 31, 63, 65}) {
    QuickSoftmax softmax(GetParam(), K);
    EXPECT_TRUE(softmax.takes(79.9f, 0)) << K;
    for (const float bad :
         {80.1f,
          -80.1f,
          std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity(),
          std::nanf("")})
      for (int64_t at = 0; at < softmax.count(); ++at)
        EXPECT_FALSE(softmax.takes(bad, at)) << K << " " << at;
  }
}

TEST_P(ConvTaps, SoftmaxTakesEveryValue) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> w = {1000, 999, -inf, -1e30f, -inf, 3, -inf, -inf};
  w.resize(w.size() + kTapSlack);
  tap_ops<float>(GetParam()).softmax(w.data(), 2, 4);
  const float e = std::exp(-1.0f);
  EXPECT_FLOAT_EQ(w[0], 1 / (1 + e));
  EXPECT_FLOAT_EQ(w[1], e / (1 + e));
  EXPECT_EQ(w[2], 0);
  EXPECT_EQ(w[3], 0);
  EXPECT_EQ(w[4], 0);
  EXPECT_EQ(w[5], 1);
  w = {1, std::nanf(""), 2, 3};
  w.resize(w.size() + kTapSlack);
  tap_ops<float>(GetParam()).softmax(w.data(), 1, 4);
  EXPECT_TRUE(std::isnan(w[1]));
}

TEST_P(ConvTaps, SoftmaxOfLowValuesKnowsNoOthers) {
  for (const int64_t K : {1, 3, 5, 15, 17, 31, 70}) {
    const int64_t pitch = tap_pitch(K), segments = 3;
    std::vector<float> w(place(segments * pitch + kTapSlack));
    for (int64_t n = 0; n < segments; ++n)
      std::fill_n(w.begin() + n * pitch, K, -200.0f);
    tap_ops<float>(GetParam()).softmax(w.data(), segments, K);
    for (int64_t i = 0; i < segments * pitch; ++i)
      EXPECT_FLOAT_EQ(w[place(i)], i % pitch < K ? 1.0f / K : 0.0f)
          << "K " << K << ", element " << i;
  }
}

TEST_P(ConvTaps, NormalizedTapsAreZeroBeyondK) {
  for (int n = 0; n <= static_cast<int>(Normalization::kAbsL2); ++n)
    for (const int64_t K : {1, 3, 5, 8, 15, 17, 31, 70}) {
      const auto normalization = static_cast<Normalization>(n);
      const int64_t pitch = tap_pitch(K), segments = 3;
      std::vector<float> w(place(segments * pitch + kTapSlack));
      for (int64_t s = 0; s < segments; ++s)
        std::fill_n(w.begin() + s * pitch, K, 0.5f);
      w[0] = std::nanf("");
      tap_ops<float>(GetParam())
          .normalize(normalization, w.data(), segments, K);
      for (int64_t i = 0; i < segments * pitch; ++i)
        if (i % pitch < K)
          EXPECT_NE(w[place(i)], 0.0f);
        else
          EXPECT_EQ(w[place(i)], 0.0f)
              << "normalization " << n << ", K " << K << ", element " << i;
    }
}

}  // namespace
}  // namespace seqconv::kernels
