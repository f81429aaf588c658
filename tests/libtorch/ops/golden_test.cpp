#include <gtest/gtest.h>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/golden_support.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"

/// Every golden case of the two convolutions: values, gradients, and, for
/// causal ones, the step form in the case's chunks and one token at a time.
namespace seqconv::ops {
using namespace internal;
namespace {

void check_lightconv(const TensorCase& golden, at::ScalarType type) {
  const double bound = tolerance(type);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return device::lightconv(
        in[0],
        in[1],
        {.padding_left = golden.number("padding_left"),
         .normalization = normalization(golden),
         .drop = drop(golden),
         .bias = optional(in[2]),
         .lengths = maybe(golden, "lengths")});
  };
  const std::vector<at::Tensor> inputs = {
      typed(golden, "x", type), typed(golden, "weight", type), typed(golden, "bias", type)};
  expect_golden(
      golden,
      differentiate(function, inputs, typed(golden, "grad_output", type)),
      {"x", "weight", "bias"},
      bound);
}

/// Taps after DropConnect: what the step form, which never drops, is given.
at::Tensor dropped_taps(const TensorCase& golden, const std::string& name) {
  const at::Tensor logits = golden.at(name);
  const at::Tensor taps = normalize_reference(logits, normalization(golden));
  return golden.has("drop_mask") ? taps * golden.at("drop_mask") / (1 - golden.real("drop_p", 0))
                                 : taps;
}

void check_lightconv_steps(const TensorCase& golden, at::ScalarType type, bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const bool drops = golden.has("drop_mask");
  const at::Tensor weight = drops
      ? dropped_taps(golden, "weight").to(type == at::kBFloat16 ? at::kFloat : type)
      : typed(golden, "weight", type);
  at::Tensor state = conv_initial_state(x.size(0), weight.size(1), x.size(2), x.options());
  const auto step = [&](int64_t first, int64_t count) {
    return device::lightconv_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        weight,
        {.normalization = drops ? Normalization::kNone : normalization(golden),
         .bias = optional(typed(golden, "bias", type))});
  };
  EXPECT_LE(relative_error(stepped(golden, single, step), golden.at("y")), tolerance(type));
}

Differentiated run_dynamicconv(
    const TensorCase& golden, at::ScalarType type, at::ScalarType logits_type) {
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return device::dynamicconv(
        in[0],
        in[1],
        {.padding_left = golden.number("padding_left"),
         .normalization = normalization(golden),
         .drop = drop(golden),
         .bias = optional(in[2]),
         .lengths = maybe(golden, "lengths")});
  };
  return differentiate(
      function,
      {typed(golden, "x", type),
       typed(golden, "logits", logits_type),
       typed(golden, "conv_bias", type)},
      typed(golden, "grad_output", type));
}

void check_dynamicconv_steps(const TensorCase& golden, at::ScalarType type, bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const bool drops = golden.has("drop_mask");
  const at::Tensor logits = drops
      ? dropped_taps(golden, "logits").to(type == at::kBFloat16 ? at::kFloat : type)
      : typed(golden, "logits", type);
  at::Tensor state = conv_initial_state(x.size(0), logits.size(3), x.size(2), x.options());
  const auto step = [&](int64_t first, int64_t count) {
    return device::dynamicconv_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        logits.narrow(1, first, count),
        {.normalization = drops ? Normalization::kNone : normalization(golden),
         .bias = optional(typed(golden, "conv_bias", type))});
  };
  EXPECT_LE(relative_error(stepped(golden, single, step), golden.at("y")), tolerance(type));
}

/// The layer: logits from the zero-filled input by a linear map, in x's type.
void check_dynamicconv_layer(const TensorCase& golden, at::ScalarType type) {
  const auto lengths = maybe(golden, "lengths");
  const int64_t heads = golden.number("heads");
  const auto function = [&](const std::vector<at::Tensor>& in) {
    at::Tensor x = in[0];
    if (lengths)
      x = x * at::arange(x.size(1)).lt(lengths->unsqueeze(1)).unsqueeze(2);
    const at::Tensor logits =
        at::linear(x, in[1], optional(in[2]))
            .reshape({x.size(0), x.size(1), heads, golden.number("kernel_size")});
    return device::dynamicconv(
        x,
        logits,
        {.padding_left = golden.number("padding_left"),
         .normalization = normalization(golden),
         .drop = drop(golden),
         .bias = optional(in[3]),
         .lengths = lengths});
  };
  const std::vector<std::string> names = {
      "x", "weight_linear.weight", "weight_linear.bias", "conv_bias"};
  std::vector<at::Tensor> inputs;
  for (const std::string& name : names)
    inputs.push_back(typed(golden, name, type));
  expect_golden(
      golden,
      differentiate(function, inputs, typed(golden, "grad_output", type)),
      names,
      layer_tolerance(type));
}

TEST(LightConvGolden, ValuesAndGradients) {
  for_each_case("lightweight_conv", check_lightconv);
}

TEST(LightConvGolden, ChunksAndSingleTokens) {
  for_each_causal_case("lightweight_conv", check_lightconv_steps);
}

/// One row of logits a channel: as many heads as channels, no normalisation.
TEST(DepthwiseConvGolden, ValuesAndGradients) {
  for_each_case("depthwise_conv", [](TensorCase golden, auto type) {
    golden.metadata["weight_norm"] = "none";
    ASSERT_EQ(golden.at("weight").size(0), golden.at("x").size(2));
    check_lightconv(golden, type);
  });
}

TEST(DepthwiseConvGolden, ChunksAndSingleTokens) {
  for_each_causal_case("depthwise_conv", [](TensorCase golden, auto type, bool single) {
    golden.metadata["weight_norm"] = "none";
    check_lightconv_steps(golden, type, single);
  });
}

TEST(DynamicConvGolden, ValuesAndGradients) {
  for_each_case("dynamic_conv", [](const auto& golden, auto type) {
    expect_golden(
        golden, run_dynamicconv(golden, type, type), {"x", "logits", "conv_bias"}, tolerance(type));
  });
}

TEST(DynamicConvGolden, Float32LogitsBesideBFloat16) {
  for_each_case("dynamic_conv", [](const auto& golden, auto type) {
    if (type == at::kBFloat16)
      expect_golden(
          golden,
          run_dynamicconv(golden, at::kBFloat16, at::kFloat),
          {"x", "logits", "conv_bias"},
          tolerance(at::kBFloat16));
  });
}

TEST(DynamicConvGolden, ChunksAndSingleTokens) {
  for_each_causal_case("dynamic_conv", check_dynamicconv_steps);
}

TEST(DynamicConvGolden, LayerWithItsLinearMap) {
  for_each_case("dynamic_conv_layer", check_dynamicconv_layer);
}

TEST(WeightNormalizationGolden, ValuesAndGradients) {
  for_each_case("weight_normalization", [](const auto& golden, auto type) {
    if (type == at::kBFloat16)
      return;  // tiny weights: their gradients have no 16-bit tolerance
    // A sequence of one token with input 1 at tap j gives tap j.
    const int64_t N = golden.at("w").size(0), K = golden.at("w").size(1);
    const auto function = [&](const std::vector<at::Tensor>& in) {
      std::vector<at::Tensor> taps;
      for (int64_t j = 0; j < K; ++j)
        taps.push_back(device::lightconv(
            at::ones({1, 1, N}, in[0].options()),
            in[0],
            {.padding_left = j, .normalization = normalization(golden)}));
      return at::cat(taps, 1)[0].t();  // [N, K]
    };
    expect_golden(
        golden,
        differentiate(function, {typed(golden, "w", type)}, typed(golden, "grad_output", type)),
        {"w"},
        tolerance(type));
  });
}

TEST(OperatorGolden, EveryFileIsCovered) {
  for (const auto& [op, files] : testing::golden_operators())
    EXPECT_TRUE(listed(testing::kCoveredOperators, op))
        << files[0] << ": operator " << op << " is not on the list";
}

TEST(OperatorGolden, EveryOperatorHasACase) {
  for (const std::string_view op : testing::kCoveredOperators)
    EXPECT_FALSE(testing::golden_files(std::string(op)).empty());
}

}  // namespace
}  // namespace seqconv::ops
