#include "libtorch/nn/cnn.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "module_support.h"
#include "support/gradients.h"
#include "support/tolerances.h"

namespace seqconv::internal {
namespace {

using testing::in_chunks;
using testing::relative_error;

struct Case {
  int64_t batch = 2, steps = 7, channels = 5, kernel = 3;
  bool causal = false, bias = true;
  std::optional<at::Tensor> lengths = std::nullopt;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B " << c.batch << " T " << c.steps << " C " << c.channels << " K " << c.kernel
             << (c.causal ? " causal" : " centred");
}

Cnn module_of(const Case& c, at::ScalarType type) {
  Cnn module(CnnOptions{
      .channels = c.channels, .kernel_size = c.kernel, .causal = c.causal, .bias = c.bias});
  testing::randomise(*module);
  module->to(type);
  return module;
}

/// y[b][t] as nested sums over taps and input channels.
at::Tensor slow(const Cnn& conv, const at::Tensor& x, int64_t left) {
  const int64_t T = x.size(1), K = conv->weight.size(2);
  at::Tensor y = at::zeros_like(x);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t t = 0; t < T; ++t) {
      at::Tensor sum = at::zeros_like(x[b][t]);
      for (int64_t j = 0; j < K; ++j)
        if (const int64_t s = t - left + j; s >= 0 && s < T)
          sum = sum + at::mv(conv->weight.select(2, j), x[b][s]);
      y[b][t].copy_(conv->bias.defined() ? sum + conv->bias : sum);
    }
  return y;
}

class CnnModule : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

TEST_F(CnnModule, IsASumOverTapsAndChannels) {
  at::NoGradGuard no_grad;
  for (const int64_t kernel : {1, 2, 3, 4, 9})
    for (const int64_t steps : {1, 3, 11})
      for (const bool causal : {false, true}) {
        const Case c{.steps = steps, .kernel = kernel, .causal = causal, .bias = steps != 3};
        SCOPED_TRACE(concat(c));
        const Cnn conv = module_of(c, at::kDouble);
        const at::Tensor x = at::randn({2, steps, 5}, at::kDouble);
        const int64_t left = causal ? kernel - 1 : kernel / 2;
        const at::Tensor want = slow(conv, x, left);
        EXPECT_LE(relative_error(conv->forward(x, {}), want), 1e-12);
        EXPECT_LE(
            relative_error(cnn_reference(x, conv->weight, conv->bias, left, {}), want), 1e-12);
      }
}

TEST_F(CnnModule, MatchesTheReferenceInAllTypesWithGradients) {
  for (const at::ScalarType type : testing::kTypes)
    for (const int64_t kernel : {1, 3, 4})
      for (const bool causal : {false, true}) {
        const Case c{
            .batch = 3,
            .steps = 12,
            .channels = 16,
            .kernel = kernel,
            .causal = causal,
            .lengths = at::tensor({12, 0, 5}, at::kLong)};
        SCOPED_TRACE(concat(c, " ", c10::toString(type)));
        const Cnn conv = module_of(c, type);
        const at::Tensor x = at::randn({3, 12, 16}, at::kFloat).to(at::kBFloat16).to(type);
        const auto run = [&](const std::vector<at::Tensor>& in) {
          return cnn_reference(in[0], in[1], in[2], causal ? kernel - 1 : kernel / 2, c.lengths);
        };
        const auto want = testing::differentiate(
            run,
            {x.to(at::kDouble), conv->weight.to(at::kDouble), conv->bias.to(at::kDouble)},
            x.to(at::kDouble));
        const at::Tensor input = x.clone().set_requires_grad(true);
        const at::Tensor y = conv->forward(input, c.lengths);
        y.backward(x);
        const double bound = testing::tolerance(type);
        EXPECT_LE(relative_error(y, want.y), bound);
        // If the processor has no convolution of 16 bits, LibTorch adds the
        // products of the taps up in that type: a rounding for each.
        const double taps = type == at::kBFloat16 ? static_cast<double>(kernel) : 1.0;
        EXPECT_LE(relative_error(input.grad(), want.grads[0]), bound * taps);
        EXPECT_LE(relative_error(conv->weight.grad(), want.grads[1]), bound);
        EXPECT_LE(relative_error(conv->bias.grad(), want.grads[2]), bound);
      }
}

TEST_F(CnnModule, PaddingChangesNothingWhateverItHolds) {
  const Case c{.kernel = 4};
  const Cnn conv = module_of(c, at::kFloat);
  const at::Tensor x = at::randn({1, 6, 5});
  const at::Tensor want = conv->forward(x, {});
  const at::Tensor got =
      conv->forward(at::cat({x, at::full({1, 3, 5}, NAN)}, 1), at::tensor({6}, at::kLong));
  EXPECT_LE(relative_error(got.narrow(1, 0, 6), want), 1e-6);
  EXPECT_TRUE(got.narrow(1, 6, 3).eq(0).all().item<bool>());
}

TEST_F(CnnModule, StepsAndChunksEqualTheFullForm) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 11, 5});
  for (const int64_t kernel : {1, 2, 3, 4, 15})
    for (const auto& chunks : testing::partitions_of_eleven()) {
      const Case c{.kernel = kernel, .causal = true};
      SCOPED_TRACE(concat(c, " in ", chunks.size(), " chunks"));
      const Cnn conv = module_of(c, at::kFloat);
      ConvState state = conv->initial_state(3);
      const at::Tensor ring = state.window;
      const at::Tensor got =
          in_chunks(chunks, [&](int64_t first, int64_t count, const StepPosition& position) {
            return conv->step(x.narrow(1, first, count), state, position);
          });
      EXPECT_LE(relative_error(got, conv->forward(x, {})), 2e-6);
      // In place, and laid out as every convolution's ring is.
      EXPECT_TRUE(state.window.is_same(ring));
      for (int64_t p = std::max<int64_t>(0, 12 - kernel); p < 11; ++p)
        EXPECT_TRUE(ring.select(1, p % (kernel - 1)).equal(x.select(1, p)));
    }
}

TEST_F(CnnModule, BeginsXavierWithTheFansOfAllTaps) {
  Cnn conv(CnnOptions{.channels = 64, .kernel_size = 3});
  EXPECT_FALSE(conv->bias.defined());
  EXPECT_NEAR(conv->weight.abs().max().item<double>(), std::sqrt(6.0 / (2 * 64 * 3)), 1e-3);
}

}  // namespace
}  // namespace seqconv::internal
