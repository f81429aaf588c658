#include <gtest/gtest.h>

#include "libtorch/ops/golden_support.h"
#include "seqconv/ops/talk.h"

/// Every golden case of TaLK, as in golden_test.cpp.
namespace seqconv::ops {
using namespace internal;
namespace {

Differentiated run_talk(const TensorCase& golden, at::ScalarType type, at::ScalarType offset_type) {
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return device::talk(
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
    const TensorCase& golden, const std::string& offsets, at::ScalarType type, bool single) {
  const at::Tensor x = typed(golden, "x", type);
  const at::Tensor left = typed(golden, offsets, type == at::kBFloat16 ? at::kFloat : type);
  const double most = left.max().item<double>() > 1 ? 2.0 : 1.0;
  const int64_t max_left = golden.number("max_left");
  at::Tensor state = talk_initial_state(x.size(0), max_left, x.size(2), x.options(), most);
  const auto step = [&](int64_t first, int64_t count) {
    return device::talk_step(
        x.narrow(1, first, count),
        state,
        at::tensor(first),
        left.narrow(1, first, count),
        max_left);
  };
  EXPECT_LE(relative_error(stepped(golden, single, step), golden.at("y")), tolerance(type));
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
    at::Tensor offsets = at::linear(x.to(wide), in[1], in[2]).sigmoid();  // [B, T, H or 2H]
    if (golden.has("drop_mask"))
      offsets = offsets * golden.at("drop_mask").to(wide) / (1 - golden.real("drop_p", 0));
    return device::talk(
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

TEST(TalkGolden, ValuesAndGradients) {
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
  for (const char* const op : {"talk_conv", "talk_conv_layer"})
    for_each_causal_case(op, [&](const auto& golden, auto type, bool single) {
      const bool layer = golden.has("offsets");
      check_talk_steps(golden, layer ? "offsets" : "offset_left", type, single);
    });
}

TEST(TalkGolden, LayerWithItsLinearMap) {
  for_each_case("talk_conv_layer", check_talk_layer);
}

}  // namespace
}  // namespace seqconv::ops
