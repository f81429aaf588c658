#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "kernels/normalization_names.h"
#include "libtorch/nn/dynamicconv.h"
#include "libtorch/nn/lightconv.h"
#include "libtorch/nn/talk.h"
#include "module_support.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"
#include "support/gradients.h"

/// The options of the convolution modules, against the operators' references.
namespace seqconv::internal {
namespace {

using testing::in_chunks;
using testing::relative_error;

constexpr double kBound = 1e-12;
constexpr int64_t kSteps = 11, kChannels = 6;

ConvOptions conv_options(ops::Normalization normalization, bool causal, bool bias) {
  return {
      .channels = kChannels,
      .heads = 3,
      .kernel_size = 4,
      .causal = causal,
      .normalization = normalization,
      .bias = bias};
}

template <class Module>
Module random_module(Module module) {
  testing::randomise(*module);
  module->to(at::kDouble);
  return module;
}

at::Tensor random_sequence() {
  return at::randn({2, kSteps, kChannels}, at::kDouble);
}

/// What a module with these options means.
at::Tensor reference(
    const LightConv& conv,
    const ConvOptions& options,
    const at::Tensor& x,
    const std::optional<at::Tensor>& lengths) {
  return ops::lightconv_reference(
      x,
      conv->weight,
      {.padding_left = options.causal ? options.kernel_size - 1 : options.kernel_size / 2,
       .normalization = options.normalization,
       .renormalize_edges = options.renormalize_edges,
       .drop = {},
       .bias = options.bias ? std::optional(conv->bias) : std::nullopt,
       .lengths = lengths});
}

at::Tensor dynamic_reference(
    const DynamicConv& conv,
    const ConvOptions& options,
    const at::Tensor& x,
    const at::Tensor& query,
    const std::optional<at::Tensor>& lengths) {
  at::Tensor logits = at::matmul(query, conv->weight.t());
  if (conv->filter_bias.defined())
    logits = logits + conv->filter_bias;
  return ops::dynamicconv_reference(
      x,
      logits.view({2, kSteps, options.heads, options.kernel_size}),
      {.padding_left = options.causal ? options.kernel_size - 1 : options.kernel_size / 2,
       .normalization = options.normalization,
       .renormalize_edges = options.renormalize_edges,
       .drop = {},
       .bias = options.bias ? std::optional(conv->bias) : std::nullopt,
       .lengths = lengths});
}

/// Calls check(options) for every normalisation, with and without bias, causal
/// and centred.
template <class Check>
void for_all_options(const Check& check) {
  for (const auto& [name, normalization] : EnumNames<ops::Normalization>::kNames)
    for (const bool causal : {false, true})
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(concat(name, causal ? " causal" : "", bias ? " with bias" : ""));
        check(conv_options(normalization, causal, bias));
      }
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(concat("renormalised edges", causal ? " causal" : ""));
    ConvOptions options = conv_options(ops::Normalization::kSoftmax, causal, /*bias=*/true);
    options.renormalize_edges = true;
    check(options);
  }
}

const std::optional<at::Tensor> kNoLengths;

class ConvolutionModules : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

TEST_F(ConvolutionModules, LightConvFollowsItsOptions) {
  for_all_options([](const ConvOptions& options) {
    at::NoGradGuard no_grad;
    const auto conv = random_module(LightConv(options));
    const at::Tensor x = random_sequence();
    DropoutPlan plan;
    for (const auto& lengths : {kNoLengths, std::optional(at::tensor({kSteps, int64_t{4}}))})
      EXPECT_LE(
          relative_error(conv->forward(x, lengths, plan), reference(conv, options, x, lengths)),
          kBound);
  });
}

TEST_F(ConvolutionModules, LightConvStepsFollowItsOptions) {
  for_all_options([](const ConvOptions& options) {
    if (!options.causal)
      return;
    at::NoGradGuard no_grad;
    const auto conv = random_module(LightConv(options));
    const at::Tensor x = random_sequence();
    for (const auto& chunks : testing::partitions_of_eleven()) {
      ConvState state = conv->initial_state(2);
      const at::Tensor got =
          in_chunks(chunks, [&](int64_t first, int64_t count, const StepPosition& position) {
            return conv->step(x.narrow(1, first, count), state, position);
          });
      EXPECT_LE(relative_error(got, reference(conv, options, x, {})), kBound);
    }
  });
}

TEST_F(ConvolutionModules, DynamicConvFollowsItsOptions) {
  for_all_options([](const ConvOptions& options) {
    at::NoGradGuard no_grad;
    for (const bool filter_bias : {false, true}) {
      ConvOptions more = options;
      more.filter_bias = filter_bias;
      const auto conv = random_module(DynamicConv(more));
      EXPECT_EQ(conv->filter_bias.defined(), filter_bias);
      const at::Tensor x = random_sequence(), query = random_sequence();
      DropoutPlan plan;
      for (const auto& lengths : {kNoLengths, std::optional(at::tensor({kSteps, int64_t{4}}))}) {
        EXPECT_LE(
            relative_error(
                conv->forward(x, lengths, plan), dynamic_reference(conv, options, x, x, lengths)),
            kBound);
        EXPECT_LE(
            relative_error(
                conv->forward(x, query, lengths, plan),
                dynamic_reference(conv, options, x, query, lengths)),
            kBound);
      }
    }
  });
}

TEST_F(ConvolutionModules, DynamicConvStepsFollowItsOptions) {
  for_all_options([](const ConvOptions& options) {
    if (!options.causal)
      return;
    at::NoGradGuard no_grad;
    ConvOptions more = options;
    more.filter_bias = true;
    const auto conv = random_module(DynamicConv(more));
    const at::Tensor x = random_sequence(), query = random_sequence();
    for (const auto& chunks : testing::partitions_of_eleven()) {
      ConvState state = conv->initial_state(2), other = conv->initial_state(2);
      const at::Tensor own =
          in_chunks(chunks, [&](int64_t first, int64_t count, const StepPosition& position) {
            return conv->step(x.narrow(1, first, count), state, position);
          });
      EXPECT_LE(relative_error(own, dynamic_reference(conv, options, x, x, {})), kBound);
      const at::Tensor asked =
          in_chunks(chunks, [&](int64_t first, int64_t count, const StepPosition& position) {
            return conv->step(
                x.narrow(1, first, count), query.narrow(1, first, count), other, position);
          });
      EXPECT_LE(relative_error(asked, dynamic_reference(conv, options, x, query, {})), kBound);
    }
  });
}

TEST_F(ConvolutionModules, GradientsReachQueryInputAndAllParameters) {
  ConvOptions options = conv_options(ops::Normalization::kSoftmax, /*causal=*/false, true);
  options.filter_bias = true;
  const auto conv = random_module(DynamicConv(options));
  const at::Tensor lengths = at::tensor({kSteps, int64_t{4}});
  const at::Tensor x = random_sequence(), query = random_sequence();
  const auto grads = [&](bool module) {
    const at::Tensor a = x.clone().set_requires_grad(true);
    const at::Tensor q = query.clone().set_requires_grad(true);
    DropoutPlan plan;
    const at::Tensor y = module ? conv->forward(a, q, lengths, plan)
                                : dynamic_reference(conv, options, a, q, lengths);
    return torch::autograd::grad(
        {y.square().sum()}, {a, q, conv->weight, conv->filter_bias, conv->bias});
  };
  const auto got = grads(true), want = grads(false);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_GT(want[i].abs().max().item<double>(), 0) << i;
    EXPECT_LE(relative_error(got[i], want[i]), 1e-11) << i;
  }
}

TEST_F(ConvolutionModules, RenormalizedTapsSumToOneEverywhere) {
  // So a constant stays what it is, also at the ends and in steps.
  at::NoGradGuard no_grad;
  for (const bool causal : {false, true})
    for (const int64_t kernel : {1, 4, 15}) {
      SCOPED_TRACE(concat("K ", kernel, causal ? " causal" : ""));
      ConvOptions options = conv_options(ops::Normalization::kSoftmax, causal, /*bias=*/false);
      options.renormalize_edges = true;
      options.kernel_size = kernel;
      const auto light = random_module(LightConv(options));
      const auto dynamic = random_module(DynamicConv(options));
      const at::Tensor x = at::ones({2, kSteps, kChannels}, at::kDouble);
      const at::Tensor query = random_sequence();
      const at::Tensor lengths = at::tensor({kSteps, int64_t{4}});
      const at::Tensor want = at::arange(kSteps).lt(lengths.unsqueeze(1)).unsqueeze(2) * x;
      DropoutPlan plan;
      EXPECT_LE(relative_error(light->forward(x, lengths, plan), want), kBound);
      EXPECT_LE(relative_error(dynamic->forward(x, query, lengths, plan), want), kBound);
      if (!causal)
        continue;
      ConvState state = light->initial_state(2);
      const at::Tensor got =
          in_chunks({4, 1, 6}, [&](int64_t first, int64_t count, const StepPosition& position) {
            return light->step(x.narrow(1, first, count), state, position);
          });
      EXPECT_LE(relative_error(got, x), kBound);
    }
}

TEST_F(ConvolutionModules, OneHeadAChannelWithoutSoftmaxIsDepthwise) {
  at::NoGradGuard no_grad;
  ConvOptions options = conv_options(ops::Normalization::kNone, /*causal=*/false, true);
  options.heads = kChannels;
  options.kernel_size = 3;
  const auto conv = random_module(LightConv(options));
  const at::Tensor x = random_sequence();
  const at::Tensor want = at::conv1d(
                              x.transpose(1, 2),
                              conv->weight.unsqueeze(1),
                              conv->bias,
                              /*stride=*/1,
                              /*padding=*/1,
                              /*dilation=*/1,
                              /*groups=*/kChannels)
                              .transpose(1, 2);
  DropoutPlan plan;
  EXPECT_LE(relative_error(conv->forward(x, {}, plan), want), kBound);
}

TEST_F(ConvolutionModules, BiasesBeginAsZeroAndOnlyWhereAskedFor) {
  const ConvOptions with = conv_options(ops::Normalization::kSoftmax, /*causal=*/false, true);
  const ConvOptions without = conv_options(ops::Normalization::kSoftmax, /*causal=*/false, false);
  EXPECT_EQ(LightConv(with)->bias.abs().max().item<double>(), 0);
  EXPECT_EQ(DynamicConv(with)->bias.abs().max().item<double>(), 0);
  EXPECT_EQ(LightConv(without)->parameters().size(), 1u);
  EXPECT_EQ(DynamicConv(without)->parameters().size(), 1u);
  ConvOptions more = without;
  more.filter_bias = true;
  const DynamicConv linear(more);
  EXPECT_GT(linear->filter_bias.abs().max().item<double>(), 0);
  EXPECT_LE(linear->filter_bias.abs().max().item<double>(), 1 / std::sqrt(double{kChannels}));
}

TEST_F(ConvolutionModules, TalkTakesAsManyHeadsAsChannels) {
  at::NoGradGuard no_grad;
  for (const bool causal : {false, true}) {
    Talk talk(
        TalkOptions{.channels = kChannels, .heads = kChannels, .max_offset = 3, .causal = causal});
    random_module(talk);
    const at::Tensor x = random_sequence();
    const auto parameters = talk->named_parameters();
    const at::Tensor offsets =
        at::sigmoid(at::linear(x, parameters["offsets.weight"], parameters["offsets.bias"]));
    const at::Tensor want = ops::talk_reference(
        x,
        offsets.narrow(2, 0, kChannels),
        causal ? std::nullopt : std::optional(offsets.narrow(2, kChannels, kChannels)),
        {.max_left = 3, .max_right = causal ? 0 : 3, .lengths = {}});
    DropoutPlan plan;
    EXPECT_LE(relative_error(talk->forward(x, {}, plan), want), 1e-11);
    if (!causal)
      continue;
    ConvState state = talk->initial_state(2);
    const at::Tensor got =
        in_chunks({4, 1, 6}, [&](int64_t first, int64_t count, const StepPosition& position) {
          return talk->step(x.narrow(1, first, count), state, position);
        });
    EXPECT_LE(relative_error(got, want), 1e-11);
  }
}

}  // namespace
}  // namespace seqconv::internal
