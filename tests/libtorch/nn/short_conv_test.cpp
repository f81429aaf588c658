#include "libtorch/nn/short_conv.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "module_support.h"
#include "support/tolerances.h"

namespace seqconv::internal {
namespace {

using testing::relative_error;

ShortConv module_of(ShortConvOptions options) {
  options.channels = 12;
  options.query_channels = 5;
  ShortConv module(options);
  testing::randomise(*module);
  module->to(at::kDouble);
  return module;
}

std::vector<ShortConvOptions> all_options() {
  using enum ops::ConvActivation;
  return {
      {.groups = 12, .kernel_size = 4, .causal = true},
      {.groups = 1, .kernel_size = 3, .bias = true, .residual = false},
      {.groups = 3, .heads = 4, .kernel_size = 4, .causal = true, .activation = kSilu},
      {.groups = 12, .heads = 12, .rank = 3, .kernel_size = 5, .causal = true, .bias = true},
      {.groups = 2, .heads = 1, .rank = 1, .kernel_size = 9, .residual = false}};
}

/// y[b][t][c] as sums over taps, and over what predicts them.
at::Tensor slow(
    const ShortConv& conv, const ShortConvOptions& options, const at::Tensor& x, at::Tensor z) {
  const int64_t T = x.size(1), C = 12, K = options.kernel_size;
  if (conv->narrow.defined())
    z = at::matmul(z, conv->narrow.t());
  at::Tensor y = at::zeros_like(x);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < C; ++c) {
        at::Tensor sum = conv->bias.defined() ? conv->bias[c].clone() : at::zeros({}, x.options());
        for (int64_t j = 0; j < K; ++j) {
          const int64_t from = t + j - (options.causal ? K - 1 : K / 2);
          if (from < 0 || from >= T)
            continue;
          at::Tensor tap = conv->weight[c * options.groups / C][j];
          if (options.heads > 0)
            tap = tap + at::dot(conv->weight_linear[c * options.heads / C * K + j], z[b][t]);
          sum = sum + tap * x[b][from][c];
        }
        if (options.activation == ops::ConvActivation::kSilu)
          sum = sum * at::sigmoid(sum);
        y[b][t][c].copy_(options.residual ? sum + x[b][t][c] : sum);
      }
  return y;
}

class ShortConvModule : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(3); }

  const at::NoGradGuard no_grad_;
};

TEST_F(ShortConvModule, IsASumOverStaticAndPredictedTaps) {
  for (const ShortConvOptions& options : all_options()) {
    const ShortConv conv = module_of(options);
    const at::Tensor x = at::randn({2, 7, 12}, at::kDouble),
                     query = at::randn({2, 7, 5}, at::kDouble);
    EXPECT_LT(relative_error(conv->forward(x, query, {}), slow(conv, options, x, query)), 1e-12);
  }
}

TEST_F(ShortConvModule, APaddedSequenceIsAsItIsAlone) {
  for (const ShortConvOptions& options : all_options()) {
    const ShortConv conv = module_of(options);
    const at::Tensor x = at::randn({2, 7, 12}, at::kDouble),
                     query = at::randn({2, 7, 5}, at::kDouble);
    const at::Tensor y = conv->forward(x, query, at::tensor({7, 4}, at::kLong));
    const at::Tensor alone =
        conv->forward(x.slice(0, 1).slice(1, 0, 4), query.slice(0, 1).slice(1, 0, 4), {});
    EXPECT_LT(
        relative_error(y.slice(0, 1).slice(1, 0, 4), alone), options.heads > 0 ? 1e-13 : 1e-30);
    EXPECT_EQ(y[1].slice(0, 4).abs().max().item<double>(), 0);
  }
}

TEST_F(ShortConvModule, StepsOfReorderedRowsAreTheWhole) {
  for (const ShortConvOptions& options : all_options()) {
    if (!options.causal)
      continue;
    const ShortConv conv = module_of(options);
    const at::Tensor x = at::randn({2, 9, 12}, at::kDouble),
                     query = at::randn({2, 9, 5}, at::kDouble);
    ShortConvPast past = conv->initial_state(2);
    const at::Tensor begin = conv->step(x.slice(1, 0, 4), query.slice(1, 0, 4), past);
    const at::Tensor parents = at::tensor({1, 0, 1}, at::kLong);
    past.reorder(parents);
    const at::Tensor rows = x.index_select(0, parents), queries = query.index_select(0, parents);
    std::vector<at::Tensor> parts = {begin.index_select(0, parents)};
    for (int64_t t = 4; t < 9; ++t)
      parts.push_back(conv->step(rows.slice(1, t, t + 1), queries.slice(1, t, t + 1), past));
    const at::Tensor steps = at::cat(parts, 1), whole = conv->forward(rows, queries, {});
    // Predicted taps come from products of other numbers of rows.
    EXPECT_LT(relative_error(steps, whole), options.heads > 0 ? 1e-13 : 1e-30);
    EXPECT_EQ(past.state.ring.size(1), options.kernel_size - 1);
  }
}

TEST_F(ShortConvModule, PredictedTapsBeginAsZeroOrSmall) {
  ShortConvOptions options = all_options()[3];
  options.channels = 12;
  options.query_channels = 5;
  const auto largest = [](const at::Tensor& x) { return x.abs().max().item<double>(); };
  const ShortConv narrow(options);
  EXPECT_GT(largest(narrow->weight_linear), 0.05 / std::sqrt(3.0));
  EXPECT_LE(largest(narrow->weight_linear), 0.1 / std::sqrt(3.0));
  EXPECT_GT(largest(narrow->narrow), 0.5 / std::sqrt(5.0));
  EXPECT_LE(largest(narrow->narrow), 1 / std::sqrt(5.0));
  EXPECT_LE(largest(narrow->weight), 1 / std::sqrt(5.0));
  options.rank = 0;
  EXPECT_EQ(largest(ShortConv(options)->weight_linear), 0);
}

TEST_F(ShortConvModule, OneThatDoesNotExistChangesNothing) {
  const ShortConv none(nullptr);
  const at::Tensor x = at::randn({1, 2, 3});
  ShortConvPast past = past_of(none, 1);
  past.reorder(at::zeros({4}, at::kLong));
  EXPECT_TRUE(convolve(none, x, x, {}).is_same(x));
  EXPECT_TRUE(convolve_step(none, x, x, past).is_same(x));
  EXPECT_FALSE(past.state.ring.defined());
}

}  // namespace
}  // namespace seqconv::internal
