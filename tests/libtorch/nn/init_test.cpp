#include "libtorch/nn/init.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "libtorch/nn/attention.h"
#include "libtorch/nn/dynamicconv.h"
#include "libtorch/nn/embedding.h"
#include "libtorch/nn/feed_forward.h"
#include "libtorch/nn/lightconv.h"
#include "libtorch/nn/talk.h"

// Initial weights of semantics.md 8.19: the largest absolute value of a large
// uniform sample lies just below its bound.
namespace seqconv::internal {
namespace {

void expect_uniform(const at::Tensor& weight, double bound) {
  const double largest = weight.abs().max().item<double>();
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.97 * bound);
  const double deviation = weight.std().item<double>();
  EXPECT_NEAR(deviation, bound / std::sqrt(3.0), 0.06 * bound);
}

void expect_zero(const at::Tensor& bias) {
  EXPECT_EQ(bias.abs().max().item<float>(), 0);
}

at::Tensor parameter(const torch::nn::Module& module, const std::string& name) {
  return module.named_parameters()[name];
}

TEST(Initialisation, LightConvUsesTheFansOfOneKernelAHead) {
  LightConv conv(ConvOptions{.channels = 64, .heads = 16, .kernel_size = 31});
  expect_uniform(conv->weight, std::sqrt(6.0 / (31 + 16 * 31)));
}

TEST(Initialisation, DynamicConvIsUniformInTheRootOfItsChannels) {
  DynamicConv conv(ConvOptions{.channels = 64, .heads = 16, .kernel_size = 31});
  EXPECT_EQ(conv->weight.sizes(), (at::IntArrayRef{16 * 31, 64}));
  expect_uniform(conv->weight, 1.0 / 8);
  EXPECT_EQ(conv->named_parameters().size(), 1u);
}

TEST(Initialisation, TalkOffsetsHaveABias) {
  Talk talk(TalkOptions{.channels = 64, .heads = 64, .max_offset = 3});
  expect_uniform(parameter(*talk, "offsets.weight"), 1.0 / 8);
  EXPECT_EQ(parameter(*talk, "offsets.bias").numel(), 128);
  expect_uniform(parameter(*talk, "offsets.bias"), 1.0 / 8);
  Talk causal(TalkOptions{.channels = 64, .heads = 64, .causal = true});
  EXPECT_EQ(parameter(*causal, "offsets.bias").numel(), 64);
}

TEST(Initialisation, AttentionProjectionsHaveTheGainOfOneOverRootTwo) {
  SelfAttention attention(SelfAttentionOptions{.channels = 64, .heads = 4});
  expect_uniform(parameter(*attention, "in_proj.weight"), std::sqrt(6.0 / 128) / std::sqrt(2.0));
  expect_uniform(parameter(*attention, "out_proj.weight"), std::sqrt(6.0 / 128));
  CrossAttention cross(CrossAttentionOptions{.channels = 64, .heads = 4});
  for (const char* name : {"query_proj.weight", "key_value_proj.weight"})
    expect_uniform(parameter(*cross, name), std::sqrt(6.0 / 128) / std::sqrt(2.0));
}

TEST(Initialisation, AttentionDrawsItsBiasesButTheOutputs) {
  SelfAttention attention(SelfAttentionOptions{.channels = 256, .heads = 4});
  expect_uniform(parameter(*attention, "in_proj.bias"), 1.0 / 16);
  expect_zero(parameter(*attention, "out_proj.bias"));
  CrossAttention cross(CrossAttentionOptions{.channels = 256, .heads = 4});
  expect_uniform(parameter(*cross, "query_proj.bias"), 1.0 / 16);
  expect_uniform(parameter(*cross, "key_value_proj.bias"), 1.0 / 16);
  expect_zero(parameter(*cross, "out_proj.bias"));
}

TEST(Initialisation, LinearIsXavierWithAZeroBias) {
  Linear linear(100, 300);
  expect_uniform(linear->weight, std::sqrt(6.0 / 400));
  expect_zero(linear->bias);
}

TEST(Initialisation, FeedForwardIsXavierOrScaledByItsFanIn) {
  FeedForwardOptions options{.channels = 200, .hidden = 300};
  FeedForward xavier(options);
  for (const std::string name : {"fc1", "fc2"}) {
    expect_uniform(parameter(*xavier, name + ".weight"), std::sqrt(6.0 / 500));
    expect_zero(parameter(*xavier, name + ".bias"));
  }
  options.init = FeedForwardInit::kFanIn;
  FeedForward fan_in(options);
  for (const std::string part : {".weight", ".bias"}) {
    expect_uniform(parameter(*fan_in, "fc1" + part), std::sqrt(1.0 / 200));
    expect_uniform(parameter(*fan_in, "fc2" + part), std::sqrt(1.0 / 300));
  }
}

TEST(Initialisation, EmbeddingsAreNormalWithAZeroPaddingRow) {
  const at::Tensor table = embedding_table(500, 64, {});
  EXPECT_NEAR(table.std().item<double>(), 0.125, 0.005);
  EXPECT_EQ(table[1].abs().max().item<float>(), 0);
  EXPECT_NE(table[0].abs().max().item<float>(), 0);
}

TEST(Initialisation, IsAFunctionOfTheSeed) {
  const auto draw = [](uint64_t seed) { return normal({16}, 1.0, make_generator(seed)); };
  EXPECT_TRUE(at::equal(draw(3), draw(3)));
  EXPECT_FALSE(at::equal(draw(3), draw(4)));
}

}  // namespace
}  // namespace seqconv::internal
