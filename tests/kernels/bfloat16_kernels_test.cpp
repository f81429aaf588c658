#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "kernels/conv.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/kernel_support.h"
#include "kernels/talk.h"

/// Tensors of bfloat16 are loaded and stored in an order of their own. What
/// comes out has to be what float32 gives for the same values, rounded: to the
/// last bit.
namespace seqconv::internal::kernels {
namespace {

using testing::draw;
using testing::Lines;
using testing::place;

class BFloat16Kernels : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(
    Isas, BFloat16Kernels, ::testing::ValuesIn(supported_isas()), testing::isa_name);

/// Both results of an operator.
template <class S>
struct Results {
  Lines<S> y, grad_x;
};

/// Calls run(x, grad_y, results) with values of both types.
template <class Run>
void expect_rounded(std::mt19937& random, int64_t count, int64_t width, const Run& run) {
  const auto draw_lines = [&] {
    const auto drawn = draw<BFloat16>(random, count);
    return Lines<BFloat16>(drawn.begin(), drawn.end());
  };
  const auto widened = [](const Lines<BFloat16>& from) {
    Lines<float> to;
    for (const BFloat16 v : from)
      to.push_back(to_float(v));
    return to;
  };
  const auto x = draw_lines(), grad_y = draw_lines();
  Results<BFloat16> got{Lines<BFloat16>(x.size()), Lines<BFloat16>(x.size())};
  Results<float> want{Lines<float>(x.size()), Lines<float>(x.size())};
  run(x, grad_y, got);
  run(widened(x), widened(grad_y), want);
  const auto expect = [&](const auto& some, const auto& all, const char* what) {
    double max = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      max = std::max(max, std::abs(double{all[i]}));
      ASSERT_EQ(some[i].bits, to_bfloat16(all[i]).bits)
          << what << ", row " << i / place(width) << " channel " << i % place(width);
    }
    EXPECT_GT(max, 0) << what;
  };
  expect(got.y, want.y, "y");
  expect(got.grad_x, want.grad_x, "grad_x");
}

/// Blocks of vectors, vectors and what is left of one, for each instruction
/// set; heads of whole lines are stored past the caches if these are small.
constexpr std::pair<int64_t, int64_t> kWidths[] = {{128, 2}, {32, 1}, {226, 2}, {83, 1}, {12, 4}};

TEST_P(BFloat16Kernels, ConvolutionsAreThoseOfFloatRounded) {
  for (const auto& [C, H] : kWidths)
    for (const int64_t K : {3, 7, 15, 31})
      for (const int64_t streams_from : {0, 1 << 30})
        for (const bool dynamic : {false, true}) {
          SCOPED_TRACE(
              ::testing::Message()
              << "C " << C << " H " << H << " K " << K << " dynamic " << dynamic);
          const ConvShape shape{1, 70, C, H, K, K / 2};
          const auto logits = draw<float>(random_, (dynamic ? shape.steps : 1) * H * K);
          const auto bias = draw<float>(random_, C);
          const Execution run{testing::serial, GetParam(), streams_from};
          const auto both = [&](const auto& x, const auto& g, auto& out) {
            using S = typename std::decay_t<decltype(x)>::value_type;
            const ConvForward<S, float> forward{
                .shape = shape,
                .x = x.data(),
                .logits = logits.data(),
                .bias = bias.data(),
                .y = out.y.data()};
            std::vector<float> grad_logits(logits.size());
            const ConvBackward<S, float> backward{
                .shape = shape,
                .x = x.data(),
                .logits = logits.data(),
                .grad_y = g.data(),
                .grad_x = out.grad_x.data(),
                .grad_logits = grad_logits.data()};
            dynamic ? dynamicconv_forward(forward, run) : lightconv_forward<S>(forward, run);
            dynamic ? dynamicconv_backward(backward, run) : lightconv_backward<S>(backward, run);
          };
          expect_rounded(random_, shape.steps * C, C, both);
        }
}

TEST_P(BFloat16Kernels, SumsOverWindowsAreThoseOfFloatRounded) {
  for (const auto& [C, H] : {kWidths[0], kWidths[1], kWidths[2], {1024, 16}})
    for (const int64_t streams_from : {0, 1 << 30}) {
      SCOPED_TRACE(::testing::Message() << "C " << C << " H " << H);
      const TalkShape shape{1, 70, C, H, 5, 7};
      std::uniform_real_distribution<float> offset(0, 1);
      std::vector<float> left(place(shape.steps * H)), right(left.size());
      for (float& value : left)
        value = offset(random_);
      for (float& value : right)
        value = offset(random_);
      const Execution run{testing::serial, GetParam(), streams_from};
      const auto both = [&](const auto& x, const auto& g, auto& out) {
        using S = typename std::decay_t<decltype(x)>::value_type;
        std::vector<float> grad_left(left.size()), grad_right(left.size());
        talk_forward(
            TalkForward<S, float>{
                .shape = shape,
                .x = x.data(),
                .offset_left = left.data(),
                .offset_right = right.data(),
                .y = out.y.data()},
            run);
        talk_backward(
            TalkBackward<S, float>{
                .shape = shape,
                .x = x.data(),
                .offset_left = left.data(),
                .offset_right = right.data(),
                .grad_y = g.data(),
                .grad_x = out.grad_x.data(),
                .grad_offset_left = grad_left.data(),
                .grad_offset_right = grad_right.data()},
            run);
      };
      expect_rounded(random_, shape.steps * C, C, both);
    }
}

// The bias alone comes out: every way of storing it rounds as one number does.
TEST_P(BFloat16Kernels, EveryStoreRoundsToNearestEven) {
  constexpr int64_t kChannels = 83;
  const std::vector<float> special = {
      1.00390625f,
      1.01171875f,
      1.0039063f,
      -1.0117186f,
      3.4e38f,
      -3.4e38f,
      1e-40f,
      std::numeric_limits<float>::infinity(),
      -std::numeric_limits<float>::infinity(),
      std::bit_cast<float>(0x7fffffffu),  // adding to its bits makes it -0
      std::bit_cast<float>(0xffffffffu),
      std::bit_cast<float>(0x7fc00000u)};
  const std::vector<BFloat16> x(place(kChannels));
  const float tap = 1;
  for (size_t turn = 0; turn < special.size(); ++turn)
    for (const bool streaming : {false, true}) {
      std::vector<float> bias;
      for (size_t c = 0; c < place(kChannels); ++c)
        bias.push_back(special[(c + turn) % special.size()]);
      Lines<BFloat16> out(place(kChannels));
      conv_kernels<BFloat16, float>(GetParam())
          .convolve(
              {.in = x.data(),
               .in_stride = kChannels,
               .last = 1,
               .taps = &tap,
               .rows = 1,
               .channels = kChannels,
               .bias = bias.data(),
               .out = out.data(),
               .out_stride = kChannels,
               .streaming = streaming});
      for (size_t c = 0; c < bias.size(); ++c)
        ASSERT_EQ(out[c].bits, to_bfloat16(bias[c]).bits) << bias[c] << " in channel " << c;
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels
