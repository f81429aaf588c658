#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"
#include "support/golden.h"
#include "support/gradients.h"
#include "support/tolerances.h"
#include "support/uncovered_golden.h"

/// Every golden case of the three operators: values, gradients, and, for causal
/// ones, the step form in the case's chunks and one token at a time.
namespace seqconv::ops {
namespace {

using testing::Differentiated;
using testing::kTypes;
using testing::layer_tolerance;
using testing::listed;
using testing::load_golden_cases;
using testing::relative_error;
using testing::TensorCase;
using testing::tolerance;

/// Cases of `op` whose normalisation exists, right-padded.
std::vector<TensorCase> cases_of(const std::string& op) {
  std::vector<TensorCase> cases;
  for (TensorCase& golden : load_golden_cases(op)) {
    if (!listed(
            testing::kCoveredWeightNorms,
            golden.text("weight_norm", "none")))
      continue;
    shift_to_right_padding(
        golden,
        {"x",
         "y",
         "logits",
         "offset_left",
         "offset_right",
         "offsets",
         "grad_output",
         "grad_x",
         "grad_logits",
         "grad_offset_left",
         "grad_offset_right"});
    cases.push_back(std::move(golden));
  }
  return cases;
}

std::optional<at::Tensor> maybe(
    const TensorCase& golden,
    const std::string& name) {
  return golden.has(name) ? std::optional(golden.at(name)) : std::nullopt;
}

/// The tensor in type `type`, or undefined.
at::Tensor
typed(const TensorCase& golden, const std::string& name, at::ScalarType type) {
  return golden.has(name) ? golden.at(name).to(type) : at::Tensor();
}

Normalization normalization(const TensorCase& golden) {
  return parse_enum<Normalization>(golden.text("weight_norm", ""), golden.name);
}

DropConnect drop(const TensorCase& golden) {
  return {golden.real("drop_p", 0), std::nullopt, maybe(golden, "drop_mask")};
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// The pieces that a sequence is fed in: the case's chunks, or single tokens.
std::vector<int64_t> pieces(const TensorCase& golden, bool single) {
  if (!single)
    return golden.numbers("chunks");
  return std::vector<int64_t>(
      static_cast<size_t>(golden.at("x").size(1)),
      int64_t{1});
}

/// Runs step(first, count) -> [B, count, C] over the pieces; zero at padding.
template <class Step>
at::Tensor stepped(const TensorCase& golden, bool single, const Step& step) {
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (const int64_t count : pieces(golden, single)) {
    parts.push_back(step(first, count));
    first += count;
  }
  EXPECT_EQ(first, golden.at("x").size(1));
  const at::Tensor y = at::cat(parts, 1);
  if (!golden.has("lengths"))
    return y;
  const at::Tensor valid =
      at::arange(y.size(1)).lt(golden.at("lengths").unsqueeze(1));
  return y * valid.unsqueeze(2);
}

/// y and the gradients of `names`, in that order.
void expect_golden(
    const TensorCase& golden,
    const Differentiated& got,
    const std::vector<std::string>& names,
    double bound) {
  EXPECT_LE(relative_error(got.y, golden.at("y")), bound) << "y";
  size_t next = 0;
  for (const std::string& name : names)
    if (golden.has(name)) {
      EXPECT_LE(
          relative_error(got.grads[next], golden.at("grad_" + name)),
          bound)
          << "grad_" << name;
      ++next;
    }
  EXPECT_EQ(next, got.grads.size());
}

void check_lightconv(const TensorCase& golden, at::ScalarType type) {
  const double bound = tolerance(type);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return lightconv(
        in[0],
        in[1],
        {.padding_left = golden.number("padding_left"),
         .normalization = normalization(golden),
         .drop = drop(golden),
         .bias = optional(in[2]),
         .lengths = maybe(golden, "lengths")});
  };
  const std::vector<at::Tensor> inputs = {
      typed(golden, "x", type),
      typed(golden, "weight", type),
      typed(golden, "bias", type)};
  expect_golden(
      golden,
      differentiate(function, inputs, typed(golden, "grad_output", type)),
      {"x", "weight", "bias"},
      bound);
}

/// Taps after DropConnect: what the step form, which never drops, is given.
at::Tensor dropped_taps(const TensorCase& golden, const std::string& name) {
  const at::Tensor raw = golden.at(name);
  const at::Tensor taps =
      normalization(golden) == Normalization::kSoftmax ? raw.softmax(-1) : raw;
  return golden.has("drop_mask")
      ? taps * golden.at("drop_mask") / (1 - golden.real("drop_p", 0))
      : taps;
}

void check_lightconv_steps(
    const TensorCase& golden,
    at::ScalarType type,
    bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const bool drops = golden.has("drop_mask");
  const at::Tensor weight = drops
      ? dropped_taps(golden, "weight")
            .to(type == at::kBFloat16 ? at::kFloat : type)
      : typed(golden, "weight", type);
  at::Tensor state =
      conv_initial_state(x.size(0), weight.size(1), x.size(2), x.options());
  const auto step = [&](int64_t first, int64_t count) {
    return lightconv_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        weight,
        drops ? Normalization::kNone : normalization(golden),
        optional(typed(golden, "bias", type)));
  };
  EXPECT_LE(
      relative_error(stepped(golden, single, step), golden.at("y")),
      tolerance(type));
}

Differentiated run_dynamicconv(
    const TensorCase& golden,
    at::ScalarType type,
    at::ScalarType logits_type) {
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return dynamicconv(
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

void check_dynamicconv_steps(
    const TensorCase& golden,
    at::ScalarType type,
    bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const bool drops = golden.has("drop_mask");
  const at::Tensor logits = drops
      ? dropped_taps(golden, "logits")
            .to(type == at::kBFloat16 ? at::kFloat : type)
      : typed(golden, "logits", type);
  at::Tensor state =
      conv_initial_state(x.size(0), logits.size(3), x.size(2), x.options());
  const auto step = [&](int64_t first, int64_t count) {
    return dynamicconv_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        logits.narrow(1, first, count),
        drops ? Normalization::kNone : normalization(golden),
        optional(typed(golden, "conv_bias", type)));
  };
  EXPECT_LE(
      relative_error(stepped(golden, single, step), golden.at("y")),
      tolerance(type));
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
            .reshape(
                {x.size(0), x.size(1), heads, golden.number("kernel_size")});
    return dynamicconv(
        x,
        logits,
        {.padding_left = golden.number("padding_left"),
         .normalization = normalization(golden),
         .drop = drop(golden),
         .bias = optional(in[3]),
         .lengths = lengths});
  };
  const std::vector<std::string> names = {
      "x",
      "weight_linear.weight",
      "weight_linear.bias",
      "conv_bias"};
  std::vector<at::Tensor> inputs;
  for (const std::string& name : names)
    inputs.push_back(typed(golden, name, type));
  expect_golden(
      golden,
      differentiate(function, inputs, typed(golden, "grad_output", type)),
      names,
      layer_tolerance(type));
}

Differentiated run_talk(
    const TensorCase& golden,
    at::ScalarType type,
    at::ScalarType offset_type) {
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return talk(
        in[0],
        in[1],
        optional(in[2]),
        {.max_left = golden.number("max_left"),
         .max_right = golden.number("max_right"),
         .lengths = maybe(golden, "lengths")});
  };
  return differentiate(
      function,
      {typed(golden, "x", type),
       typed(golden, "offset_left", offset_type),
       typed(golden, "offset_right", offset_type)},
      typed(golden, "grad_output", type));
}

void check_talk_steps(
    const TensorCase& golden,
    const std::string& offsets,
    at::ScalarType type,
    bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const at::Tensor left =
      typed(golden, offsets, type == at::kBFloat16 ? at::kFloat : type);
  const double most = left.max().item<double>() > 1 ? 2.0 : 1.0;
  const int64_t max_left = golden.number("max_left");
  at::Tensor state =
      talk_initial_state(x.size(0), max_left, x.size(2), x.options(), most);
  const auto step = [&](int64_t first, int64_t count) {
    return talk_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        left.narrow(1, first, count),
        max_left);
  };
  EXPECT_LE(
      relative_error(stepped(golden, single, step), golden.at("y")),
      tolerance(type));
}

/// The layer: offsets are a sigmoid of a linear map, here in float32 or wider
/// (positions never live in 16 bits).
void check_talk_layer(const TensorCase& golden, at::ScalarType type) {
  const auto lengths = maybe(golden, "lengths");
  const int64_t heads = golden.number("heads");
  const auto wide = type == at::kBFloat16 ? at::kFloat : type;
  const bool causal = golden.flag("causal");
  const auto function = [&](const std::vector<at::Tensor>& in) {
    at::Tensor x = in[0];
    if (lengths)
      x = x * at::arange(x.size(1)).lt(lengths->unsqueeze(1)).unsqueeze(2);
    at::Tensor offsets =
        at::linear(x.to(wide), in[1], in[2]).sigmoid();  // [B, T, H or 2H]
    if (golden.has("drop_mask"))
      offsets = offsets * golden.at("drop_mask").to(wide) /
          (1 - golden.real("drop_p", 0));
    return talk(
        x,
        offsets.narrow(2, 0, heads),
        causal ? std::nullopt : std::optional(offsets.narrow(2, heads, heads)),
        {.max_left = golden.number("max_left"),
         .max_right = golden.number("max_right"),
         .lengths = lengths});
  };
  expect_golden(
      golden,
      differentiate(
          function,
          {typed(golden, "x", type),
           typed(golden, "offsets.weight", wide),
           typed(golden, "offsets.bias", wide)},
          typed(golden, "grad_output", type)),
      {"x", "offsets.weight", "offsets.bias"},
      layer_tolerance(type));
}

/// Calls check(golden, type) for every case of `op` in every type.
template <class Check>
void for_each_case(const std::string& op, const Check& check) {
  const std::vector<TensorCase> cases = cases_of(op);
  EXPECT_FALSE(cases.empty()) << "no case of " << op;
  for (const TensorCase& golden : cases)
    for (const at::ScalarType type : kTypes) {
      SCOPED_TRACE(golden.name + " in " + c10::toString(type));
      check(golden, type);
    }
}

TEST(LightConvGolden, ValuesAndGradients) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("lightconv"));
  for_each_case("lightweight_conv", check_lightconv);
}

TEST(LightConvGolden, ChunksAndSingleTokens) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("lightconv"));
  for_each_case("lightweight_conv", [](const auto& golden, auto type) {
    for (const bool single : {false, true})
      if (golden.flag("causal"))
        check_lightconv_steps(golden, type, single);
  });
}

TEST(DynamicConvGolden, ValuesAndGradients) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("dynamicconv"));
  for_each_case("dynamic_conv", [](const auto& golden, auto type) {
    expect_golden(
        golden,
        run_dynamicconv(golden, type, type),
        {"x", "logits", "conv_bias"},
        tolerance(type));
  });
}

TEST(DynamicConvGolden, Float32LogitsBesideBFloat16) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("dynamicconv"));
  for (const TensorCase& golden : cases_of("dynamic_conv")) {
    SCOPED_TRACE(golden.name);
    expect_golden(
        golden,
        run_dynamicconv(golden, at::kBFloat16, at::kFloat),
        {"x", "logits", "conv_bias"},
        tolerance(at::kBFloat16));
  }
}

TEST(DynamicConvGolden, ChunksAndSingleTokens) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("dynamicconv"));
  for_each_case("dynamic_conv", [](const auto& golden, auto type) {
    for (const bool single : {false, true})
      if (golden.flag("causal"))
        check_dynamicconv_steps(golden, type, single);
  });
}

TEST(DynamicConvGolden, LayerWithItsLinearMap) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("dynamicconv"));
  for_each_case("dynamic_conv_layer", check_dynamicconv_layer);
}

TEST(TalkGolden, ValuesAndGradients) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("talk"));
  for_each_case("talk_conv", [](const auto& golden, auto type) {
    for (const auto offset_type : {type, at::kFloat})
      if (offset_type == type || type == at::kBFloat16)
        expect_golden(
            golden,
            run_talk(golden, type, offset_type),
            {"x", "offset_left", "offset_right"},
            tolerance(type));
  });
}

TEST(TalkGolden, ChunksAndSingleTokens) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("talk"));
  for (const char* const op : {"talk_conv", "talk_conv_layer"})
    for_each_case(op, [&](const auto& golden, auto type) {
      const bool layer = golden.has("offsets");
      for (const bool single : {false, true})
        if (golden.flag("causal"))
          check_talk_steps(
              golden,
              layer ? "offsets" : "offset_left",
              type,
              single);
    });
}

TEST(TalkGolden, LayerWithItsLinearMap) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("talk"));
  for_each_case("talk_conv_layer", check_talk_layer);
}

TEST(WeightNormalizationGolden, ValuesAndGradients) {
  SEQCONV_REQUIRE_GOLDEN(testing::golden_files("weight_normalization"));
  for_each_case("weight_normalization", [](const auto& golden, auto type) {
    if (type == at::kBFloat16)
      return;  // tiny weights: their gradients have no 16-bit tolerance
    // A sequence of one token with input 1 at tap j gives tap j.
    const int64_t N = golden.at("w").size(0), K = golden.at("w").size(1);
    const auto function = [&](const std::vector<at::Tensor>& in) {
      std::vector<at::Tensor> taps;
      for (int64_t j = 0; j < K; ++j)
        taps.push_back(lightconv(
            at::ones({1, 1, N}, in[0].options()),
            in[0],
            {.padding_left = j, .normalization = normalization(golden)}));
      return at::cat(taps, 1)[0].t();  // [N, K]
    };
    expect_golden(
        golden,
        differentiate(
            function,
            {typed(golden, "w", type)},
            typed(golden, "grad_output", type)),
        {"w"},
        tolerance(type));
  });
}

TEST(OperatorGolden, EveryFileIsCoveredOrListed) {
  const auto files = testing::golden_files("");
  SEQCONV_REQUIRE_GOLDEN(files);
  std::map<std::string, int> uncovered;
  for (const auto& path : files) {
    const SafetensorsReader reader(path);
    const std::string& op = reader.metadata().at("op");
    const auto norm = reader.metadata().find("weight_norm");
    if (listed(testing::kUncoveredOperators, op))
      ++uncovered[op];
    else if (!listed(testing::kCoveredOperators, op))
      ADD_FAILURE() << path << ": operator " << op << " is on no list";
    else if (
        norm == reader.metadata().end() ||
        listed(testing::kCoveredWeightNorms, norm->second))
      continue;
    else if (listed(testing::kUncoveredWeightNorms, norm->second))
      ++uncovered[op + " with weight_norm " + norm->second];
    else
      ADD_FAILURE() << path << ": weight_norm " << norm->second
                    << " is on no list";
  }
  for (const auto& [name, count] : uncovered)
    std::cout << "not covered yet: " << name << " (" << count << " cases)\n";
}

}  // namespace
}  // namespace seqconv::ops
