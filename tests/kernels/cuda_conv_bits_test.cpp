#include "kernels/cuda_conv_support.h"
#include "kernels/cuda_talk_support.h"

/// What the results of the device's convolutions may depend on: not on which
/// gradients are asked for besides (TaLK's neither), nor on a number that is
/// none where no tap reads it.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

constexpr LogitsOf kKinds[] = {LogitsOf::kHead, LogitsOf::kPosition};

template <class S>
bool is_untouched(const std::vector<S>& values) {
  return same_bits(values, garbage<S>(static_cast<int64_t>(values.size())));
}

template <class S>
void expect_gradients_alone(ConvCase c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const ConvValues values(c);
  const auto want = run_on_host<S>(c, values, /*backwards=*/false);
  for (int set = 0; set < 7; ++set) {
    SCOPED_TRACE(set);
    c.wants_x = (set & 1) != 0;
    c.wants_logits = (set & 2) != 0;
    c.wants_bias = (set & 4) != 0;
    const auto got = run_on_host<S>(c, values, /*backwards=*/false);
    EXPECT_TRUE(c.wants_x ? same_bits(got.grad_x, want.grad_x) : is_untouched(got.grad_x));
    EXPECT_TRUE(
        c.wants_logits ? same_bits(got.grad_logits_stored, want.grad_logits_stored)
                       : is_untouched(got.grad_logits_stored));
    EXPECT_TRUE(
        c.wants_bias ? same_bits(got.grad_bias, want.grad_bias) : is_untouched(got.grad_bias));
  }
}

TEST(CudaConvBits, AGradientThatIsNotWantedDoesNotChangeTheOthers) {
  for (const LogitsOf kind : kKinds)
    for (const int64_t K : {3, 31})
      for (const bool renormalize : {false, true})
        for (const int64_t T : {0, 70}) {
          const ConvCase c = {
              .kind = kind,
              .T = T,
              .R = 16,
              .K = K,
              .padding_left = K / 2,
              .renormalize = renormalize,
              .lengths = {T, T / 2}};
          expect_gradients_alone<float>(c);
          expect_gradients_alone<BFloat16>(c);  // by tensor cores
        }
}

TEST(CudaTalkBits, AGradientThatIsNotWantedDoesNotChangeTheOthers) {
  TalkCase c = {.T = 140, .R = 8, .max_left = 9, .lengths = {140, 60}};
  const TalkValues values(c);
  const auto want = run_on_host<float, float>(c, values, /*backwards=*/false);
  c.wants_offsets = false;
  auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
  EXPECT_TRUE(is_untouched(got.grad_left) && is_untouched(got.grad_right));
  c.wants_offsets = true;
  c.wants_x = false;
  got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_TRUE(is_untouched(got.grad_x));
  EXPECT_TRUE(same_bits(got.grad_left, want.grad_left));
  EXPECT_TRUE(same_bits(got.grad_right, want.grad_right));
}

/// `bad` in x and in grad_y at one position of one channel: it shows where a
/// tap reads it, and nowhere else.
template <class S>
void expect_bad_stays(const ConvCase& c, int64_t at, double bad) {
  SCOPED_TRACE(::testing::Message() << c << " at " << at << " of " << bad);
  ConvValues values(c);
  const auto want = run_on_host<S>(c, values, /*backwards=*/false);
  const auto place = static_cast<size_t>(at * c.C() + 1);
  values.x[place] = bad;
  values.grad_y[place] = bad;
  const auto got = run_on_host<S>(c, values, /*backwards=*/false);
  const auto shows = [&](S v) { return !std::isfinite(widen(v)); };
  for (int64_t t = 0; t < c.T; ++t)
    for (int64_t channel = 0; channel < c.C(); ++channel) {
      const auto i = static_cast<size_t>(t * c.C() + channel);
      const int64_t tap = at - t + c.padding_left;    // of y[t]
      const int64_t other = t - at + c.padding_left;  // of y[at] that reads x[t]
      const bool reads = channel == 1 && tap >= 0 && tap < c.K;
      const bool feeds = channel == 1 && other >= 0 && other < c.K;
      EXPECT_EQ(shows(got.y[i]), reads) << t;
      EXPECT_EQ(shows(got.grad_x[i]), feeds) << t;
      if (!reads) {
        EXPECT_EQ(widen(got.y[i]), widen(want.y[i])) << t;
      }
      if (!feeds) {
        EXPECT_EQ(widen(got.grad_x[i]), widen(want.grad_x[i])) << t;
      }
    }
}

TEST(CudaConvBits, ANumberThatIsNoneShowsWhereATapReadsItOnly) {
  for (const LogitsOf kind : kKinds)
    for (const int64_t padding : {30, 15, 0})
      for (const double bad : {double{NAN}, HUGE_VAL}) {
        const ConvCase c = {
            .kind = kind,
            .B = 1,
            .T = 70,
            .R = 16,
            .K = 31,
            .padding_left = padding,
            .bias = false};
        expect_bad_stays<BFloat16>(c, 37, bad);
        expect_bad_stays<Float16>(c, 69, bad);
        expect_bad_stays<float>(c, 37, bad);
      }
}

/// One tap of one position, without a softmax that would spread it.
TEST(CudaConvBits, ATapThatIsNoNumberShowsInItsOwnOutputOnly) {
  for (const int64_t j : {0, 15, 30}) {
    SCOPED_TRACE(j);
    const ConvCase c = {
        .B = 1,
        .T = 70,
        .H = 1,
        .R = 16,
        .K = 31,
        .padding_left = 15,
        .softmax = false,
        .bias = false};
    constexpr int64_t kAt = 37;
    ConvValues values(c);
    values.logits[static_cast<size_t>(kAt * c.K + j)] = NAN;
    const auto got = run_on_host<BFloat16>(c, values, /*backwards=*/false);
    for (int64_t t = 0; t < c.T; ++t) {
      const auto i = static_cast<size_t>(t * c.C());
      EXPECT_EQ(std::isnan(widen(got.y[i])), t == kAt) << t;
      EXPECT_EQ(std::isnan(widen(got.grad_x[i])), t == kAt - 15 + j) << t;
    }
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
