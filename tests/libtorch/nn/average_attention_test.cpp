#include "libtorch/nn/average_attention.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "libtorch/nn/attention.h"
#include "module_support.h"
#include "seqconv/ops/cumulative_average.h"
#include "support/golden.h"
#include "support/gradients.h"
#include "support/tolerances.h"

namespace seqconv::internal {
namespace {

using testing::in_chunks;
using testing::TensorCase;

const std::vector<std::string> kSequences = {"x", "g", "y", "grad_output", "grad_x", "grad_g"};

std::optional<at::Tensor> lengths_of(const TensorCase& golden) {
  return golden.has("lengths") ? std::optional(golden.at("lengths")) : std::nullopt;
}

/// The module with the case's parameters; golden ffn.0 and ffn.1 are fc1, fc2.
AverageAttention module_of(const TensorCase& golden, at::ScalarType type) {
  AverageAttention module(AverageAttentionOptions{
      .channels = golden.at("x").size(2),
      .hidden = golden.has("ffn.0.weight") ? golden.at("ffn.0.weight").size(0) : 0});
  module->to(type);
  for (const char* kind : {"weight", "bias"}) {
    const std::string suffix = concat(".", kind);
    testing::set_parameter(*module, "gate" + suffix, golden.at("gate" + suffix));
    if (!golden.has("ffn.0.weight"))
      continue;
    testing::set_parameter(*module, "ffn.fc1" + suffix, golden.at("ffn.0" + suffix));
    testing::set_parameter(*module, "ffn.fc2" + suffix, golden.at("ffn.1" + suffix));
  }
  return module;
}

void check_module(const TensorCase& golden, at::ScalarType type) {
  const AverageAttention module = module_of(golden, type);
  const at::Tensor x = golden.at("x").to(type).clone().set_requires_grad(true);
  DropoutPlan plan;
  const at::Tensor y = module->forward(x, lengths_of(golden), plan);
  y.backward(golden.at("grad_output").to(type));
  const double bound = testing::tolerance(type);
  EXPECT_NEAR_TENSOR(y, golden.at("y"), bound);
  EXPECT_NEAR_TENSOR(x.grad(), golden.at("grad_x"), bound);
  for (const auto& item : module->named_parameters()) {
    std::string name = item.key();
    if (name.rfind("ffn.fc", 0) == 0)
      name.replace(0, 7, name[6] == '1' ? "ffn.0" : "ffn.1");
    SCOPED_TRACE(name);
    EXPECT_NEAR_TENSOR(item.value().grad(), golden.at("grad_" + name), bound);
  }
}

/// In the case's chunks and one at a time.
void check_module_steps(const TensorCase& golden, at::ScalarType type) {
  const AverageAttention module = module_of(golden, type);
  at::NoGradGuard no_grad;
  const at::Tensor x = golden.at("x").to(type);
  for (const auto& chunks : {golden.numbers("chunks"), std::vector<int64_t>(x.size(1), 1)}) {
    AverageState state = module->initial_state(x.size(0));
    at::Tensor y =
        in_chunks(chunks, [&](int64_t first, int64_t count, const StepPosition& position) {
          return module->step(x.narrow(1, first, count), state, position);
        });
    if (golden.has("lengths"))
      y = y * at::arange(y.size(1)).lt(golden.at("lengths").unsqueeze(1)).unsqueeze(2);
    EXPECT_NEAR_TENSOR(y, golden.at("y"), testing::tolerance(type));
  }
}

std::vector<TensorCase> cases_of(const std::string& op) {
  std::vector<TensorCase> cases = testing::load_golden_cases(op);
  EXPECT_FALSE(cases.empty()) << op;
  for (TensorCase& golden : cases)
    testing::shift_to_right_padding(golden, kSequences);
  return cases;
}

TEST(AverageAttentionGolden, ValuesAndGradientsOfTheModule) {
  for (const TensorCase& golden : cases_of("average_attention"))
    for (const auto type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
      check_module(golden, type);
    }
}

TEST(AverageAttentionGolden, ChunksAndSingleTokensOfTheModule) {
  for (const TensorCase& golden : cases_of("average_attention"))
    for (const auto type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
      check_module_steps(golden, type);
    }
}

TEST(AverageAttentionGateGolden, ValuesAndGradients) {
  const std::vector<std::string> names = {"x", "g", "gate.weight", "gate.bias"};
  for (const TensorCase& golden : cases_of("average_attention_gate"))
    for (const auto type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
      std::vector<at::Tensor> inputs;
      for (const std::string& name : names)
        inputs.push_back(golden.at(name).to(type));
      const auto got = testing::differentiate(
          [](const std::vector<at::Tensor>& in) {
            return average_attention_gate(in[0], in[1], in[2], in[3]);
          },
          inputs,
          golden.at("grad_output").to(type));
      const double bound = testing::tolerance(type);
      EXPECT_NEAR_TENSOR(got.y, golden.at("y"), bound);
      for (size_t i = 0; i < names.size(); ++i) {
        SCOPED_TRACE(names[i]);
        EXPECT_NEAR_TENSOR(got.grads[i], golden.at("grad_" + names[i]), bound);
      }
    }
}

TEST(AverageAttentionModule, PaddingChangesNothingWhateverItHolds) {
  at::manual_seed(1);
  AverageAttention module(AverageAttentionOptions{.channels = 6, .hidden = 10});
  testing::randomise(*module);
  const at::Tensor x = at::randn({1, 5, 6});
  const auto gradients = [&](const at::Tensor& input, const std::optional<at::Tensor>& lengths) {
    DropoutPlan plan;
    module->zero_grad();
    module->forward(input, lengths, plan).square().sum().backward();
    std::vector<at::Tensor> result;
    for (const at::Tensor& parameter : module->parameters())
      result.push_back(parameter.grad().clone());
    return result;
  };
  const auto want = gradients(x, {});
  const auto got = gradients(at::cat({x, at::full({1, 3, 6}, NAN)}, 1), at::tensor({5}, at::kLong));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(testing::relative_error(got[i], want[i]), 1e-5);
  DropoutPlan plan;
  EXPECT_TRUE(module->forward(at::cat({x, x}, 1), at::tensor({5}, at::kLong), plan)
                  .narrow(1, 5, 5)
                  .eq(0)
                  .all()
                  .item<bool>());
}

TEST(AverageAttentionModule, ReorderedStatesContinueTheirParents) {
  at::manual_seed(1);
  AverageAttention module(AverageAttentionOptions{.channels = 6, .hidden = 4});
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 7, 6});
  const at::Tensor parents = at::tensor({2, 0, 2, 1}, at::kLong);
  StepPosition position{.tensor = at::tensor({0}, at::kLong)};
  MixerState state = module->initial_state(3);
  module->step(x.narrow(1, 0, 4), state.as<AverageState>(), position);
  state.reorder(parents);
  position.tensor.fill_(4);
  const at::Tensor followed = x.index_select(0, parents);
  const at::Tensor got = module->step(followed.narrow(1, 4, 3), state.as<AverageState>(), position);
  DropoutPlan plan;
  const at::Tensor want = module->forward(followed, {}, plan);
  EXPECT_LE(testing::relative_error(got, want.narrow(1, 4, 3)), 1e-6);
}

TEST(AverageAttentionModule, TheGateAndTheNetworkBeginXavier) {
  AverageAttention module(AverageAttentionOptions{.channels = 64, .hidden = 128});
  const auto parameters = module->named_parameters();
  EXPECT_EQ(parameters.size(), 6u);
  EXPECT_NEAR(parameters["gate.weight"].abs().max().item<double>(), std::sqrt(6.0 / 256), 1e-3);
  EXPECT_NEAR(parameters["ffn.fc1.weight"].abs().max().item<double>(), std::sqrt(6.0 / 192), 1e-3);
  EXPECT_EQ(parameters["gate.bias"].abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace seqconv::internal
