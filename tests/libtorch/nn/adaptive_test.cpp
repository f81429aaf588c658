#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "libtorch/nn/adaptive_input.h"
#include "libtorch/nn/adaptive_softmax.h"
#include "libtorch/nn/module_support.h"
#include "support/golden.h"
#include "support/gradients.h"
#include "support/tolerances.h"

namespace seqconv::internal {
namespace {

using testing::TensorCase;

constexpr auto kFloats = {at::kDouble, at::kFloat};

double bound(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : 1e-5;
}

/// Cutoffs without the vocabulary's size, which the cases list last.
std::vector<int64_t> cutoffs_of(const TensorCase& golden) {
  return golden.numbers("cutoffs");
}

AdaptiveInput make_input(const TensorCase& golden, int64_t channels, int64_t initial_dim) {
  return AdaptiveInput(AdaptiveInputOptions{
      .vocabulary = golden.number("vocabulary"),
      .channels = channels,
      .cutoffs = cutoffs_of(golden),
      .initial_dim = initial_dim,
      .factor = golden.real("factor", 0)});
}

/// {name of a parameter, name of its tensor in the golden case}.
using Names = std::vector<std::pair<std::string, std::string>>;

Names input_names(const TensorCase& golden, bool projections) {
  Names names;
  for (int64_t i = 0; golden.has(concat("embed.", i, ".weight")); ++i) {
    names.emplace_back(concat("table", i), concat("embed.", i, ".weight"));
    const std::string projection = concat("embed.", i, ".proj.weight");
    if (projections && golden.has(projection))
      names.emplace_back(concat("projection", i), projection);
  }
  return names;
}

Names softmax_names(const TensorCase& golden) {
  Names names;
  const auto add = [&](const std::string& name, const std::string& tensor) {
    if (golden.has(tensor))
      names.emplace_back(name, tensor);
  };
  add("head", "head.weight");
  add("head_projection", "head.proj.weight");
  add("class_projection", "class_proj.weight");
  for (int i = 0; i < 4; ++i) {
    add(concat("tail", i, "_projection"), concat("tail.", i, ".proj.weight"));
    add(concat("tail", i, "_words"), concat("tail.", i, ".out.weight"));
  }
  return names;
}

void load(
    torch::nn::Module& module, const TensorCase& golden, const Names& names, at::ScalarType type) {
  module.to(type);
  for (const auto& [name, tensor] : names)
    testing::set_parameter(module, name, golden.at(tensor).to(type));
}

void expect_gradients(
    const torch::nn::Module& module,
    const TensorCase& golden,
    const Names& names,
    at::ScalarType type) {
  for (const auto& [name, tensor] : names)
    EXPECT_LE(
        testing::relative_error(
            module.named_parameters()[name].grad(), golden.at("grad_" + tensor)),
        bound(type))
        << name;
}

void check_input(const TensorCase& golden, at::ScalarType type) {
  SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
  AdaptiveInput input = make_input(golden, golden.number("dim"), golden.number("initial_dim"));
  const Names names = input_names(golden, true);
  ASSERT_EQ(names.size(), input->parameters().size());
  load(*input, golden, names, type);
  const at::Tensor y = input->forward(golden.at("tokens"));
  EXPECT_LE(testing::relative_error(y.detach(), golden.at("y")), bound(type));
  y.backward(golden.at("grad_output").to(type));
  expect_gradients(*input, golden, names, type);
}

TEST(AdaptiveInputGolden, EveryCase) {
  const auto cases = testing::load_golden_cases("adaptive_input");
  for (const TensorCase& golden : cases)
    for (const auto type : kFloats)
      check_input(golden, type);
}

struct SoftmaxCase {
  AdaptiveInput tied{nullptr};
  AdaptiveSoftmax softmax{nullptr};
};

SoftmaxCase make_softmax(const TensorCase& golden, at::ScalarType type) {
  const int64_t channels = golden.at("x").size(2);
  SoftmaxCase result;
  if (golden.flag("tied")) {
    result.tied = make_input(golden, channels, golden.at("embed.0.weight").size(1));
    load(*result.tied, golden, input_names(golden, true), type);
  }
  result.softmax = AdaptiveSoftmax(
      AdaptiveSoftmaxOptions{
          .vocabulary = golden.number("vocabulary"),
          .channels = channels,
          .cutoffs = cutoffs_of(golden),
          .factor = golden.real("factor", 0),
          .tie_projections = golden.flag("tied_proj"),
          .fairseq_compatible = golden.flag("ignore_tail_index_1")},
      InitGenerator(),
      result.tied);
  load(*result.softmax, golden, softmax_names(golden), type);
  return result;
}

void check_softmax(const TensorCase& golden, at::ScalarType type) {
  SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
  const SoftmaxCase made = make_softmax(golden, type);
  const int64_t channels = golden.at("x").size(2);
  const at::Tensor x = golden.at("x").to(type).view({-1, channels}).clone().requires_grad_();
  const at::Tensor target = golden.at("target").view(-1);
  const at::Tensor wanted =  // [M, V]
      golden.at("log_prob").view({x.size(0), -1});
  const at::Tensor all = made.softmax->log_probabilities(x).detach();
  EXPECT_LE(testing::relative_error(all, wanted), bound(type));
  EXPECT_LE(
      testing::relative_error(
          made.softmax->target_log_probabilities(x, target).detach(),
          wanted.gather(1, target.unsqueeze(1)).squeeze(1)),
      bound(type));
  DropoutPlan evaluation;
  const auto sums = made.softmax->loss(x, target, evaluation);
  EXPECT_LE(testing::relative_error(sums.loss.detach(), golden.at("loss")), bound(type));
  sums.loss.backward();
  EXPECT_LE(testing::relative_error(x.grad(), golden.at("grad_x").view_as(x)), bound(type));
  expect_gradients(*made.softmax, golden, softmax_names(golden), type);
  if (made.tied)
    expect_gradients(*made.tied, golden, input_names(golden, true), type);
}

TEST(AdaptiveSoftmaxGolden, EveryCase) {
  const auto cases = testing::load_golden_cases("adaptive_softmax");
  for (const TensorCase& golden : cases)
    for (const auto type : kFloats)
      check_softmax(golden, type);
}

at::Tensor random_rows(at::IntArrayRef shape, uint64_t seed) {
  return normal(shape, 1, make_generator(seed));
}

AdaptiveSoftmaxOptions small_softmax() {
  return {.vocabulary = 60, .channels = 16, .cutoffs = {10, 30}, .factor = 2};
}

TEST(AdaptiveSoftmax, ProbabilitiesSumToOne) {
  const AdaptiveSoftmax softmax(small_softmax(), make_generator(3));
  const at::Tensor x = random_rows({5, 16}, 4);
  const at::Tensor sums = softmax->log_probabilities(x).exp().sum(1);
  EXPECT_TRUE(at::allclose(sums, at::ones({5}), 1e-5, 1e-5));
}

TEST(AdaptiveSoftmax, ChunksOfRowsChangeNothing) {
  // More rows than a chunk of the evaluation holds.
  const AdaptiveSoftmax softmax(small_softmax(), make_generator(3));
  const at::Tensor x = random_rows({600, 16}, 5);
  const at::Tensor target = at::arange(600).remainder(60);
  at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(
      softmax->target_log_probabilities(x, target),
      softmax->log_probabilities(x).gather(1, target.unsqueeze(1)).squeeze(1),
      1e-5,
      1e-5));
}

TEST(AdaptiveSoftmax, DropoutIsAFunctionOfItsKeyAndTrainsOnly) {
  AdaptiveSoftmaxOptions options = small_softmax();
  options.dropout = 0.5;
  const AdaptiveSoftmax softmax(options, make_generator(3));
  const at::Tensor x = random_rows({12, 16}, 4);
  const at::Tensor target = at::arange(12) * 5;  // some of every band
  const auto loss = [&](DropoutPlan plan) {
    return softmax->loss(x, target, plan).loss.item<double>();
  };
  const RandomKey key{.seed = 1, .update = 2};
  EXPECT_EQ(loss(DropoutPlan(key)), loss(DropoutPlan(key)));
  EXPECT_NE(loss(DropoutPlan(key)), loss(DropoutPlan(RandomKey{.seed = 1, .update = 3})));
  EXPECT_NEAR(
      loss(DropoutPlan()),
      -softmax->target_log_probabilities(x, target).sum().item<double>(),
      1e-3);
}

TEST(AdaptiveInput, TheQuirkZeroesTheSecondWordOfEveryBand) {
  AdaptiveInputOptions options{.vocabulary = 60, .channels = 16, .cutoffs = {10, 30}, .factor = 2};
  const auto row_is_zero = [&](int64_t band) {
    const AdaptiveInput input(options, make_generator(1));
    return input->table(band)[1].eq(0).all().item<bool>();
  };
  EXPECT_TRUE(row_is_zero(0));
  EXPECT_FALSE(row_is_zero(1));
  options.fairseq_compatible = true;
  EXPECT_TRUE(row_is_zero(1));
  EXPECT_TRUE(row_is_zero(2));
  const AdaptiveInput input(options, make_generator(1));
  input->forward(at::tensor({11, 12}, at::kLong).unsqueeze(0)).sum().backward();
  const at::Tensor gradient = input->table(1).grad();
  EXPECT_TRUE(gradient[1].eq(0).all().item<bool>());
  EXPECT_TRUE(gradient[2].ne(0).any().item<bool>());
}

TEST(AdaptiveErrors, SayWhatWasWantedAndWhatCame) {
  EXPECT_TENSOR_ERROR(
      make_bands("adaptive_softmax", {20, 20}, 100),
      "[adaptive_softmax] cutoffs must be ascending and at least 4 (the special symbols), but got "
      "20 20");
  EXPECT_TENSOR_ERROR(
      make_bands("adaptive_softmax", {20, 200}, 100),
      "[adaptive_softmax] cutoffs must be at most the vocabulary of 100 symbols, but got 20 200");
  EXPECT_TENSOR_ERROR(
      band_width("adaptive_input", 8, 4, 2),
      "[adaptive_input] the factor must be at least 1 and leave every band a width of 1, but got "
      "factor 4 for width 8, which gives band 2 a width of 0.5");
  AdaptiveSoftmaxOptions options = small_softmax();
  options.tie_projections = true;
  EXPECT_TENSOR_ERROR(
      AdaptiveSoftmax(options),
      "[adaptive_softmax] tied projections need tied words, but the words are not tied");
  const AdaptiveSoftmax softmax(small_softmax());
  DropoutPlan evaluation;
  EXPECT_TENSOR_ERROR(
      softmax->loss(at::zeros({1, 16}), at::tensor({60}, at::kLong), evaluation),
      "[adaptive_softmax] targets must be in [0, 60), but got 60 in row 0");
  const AdaptiveInput input(
      AdaptiveInputOptions{.vocabulary = 60, .channels = 16, .cutoffs = {10}, .factor = 2});
  EXPECT_TENSOR_ERROR(
      input->forward(at::full({1, 1}, -1, at::kLong)),
      "[adaptive_input] ids must be in [0, 60), but got -1");
}

}  // namespace
}  // namespace seqconv::internal
