#include "train/optimizer.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "support/golden_case.h"

namespace seqconv::internal {
namespace {

constexpr double kFloatTolerance = 1e-6;  // the golden data's, for float32

at::Tensor row(const std::vector<double>& values, int64_t index, int64_t n) {
  const auto begin = values.begin() + index * n;
  return at::tensor(std::vector<float>(begin, begin + n));
}

std::vector<double> doubles(const std::vector<double>& values, int64_t index, int64_t n) {
  return {values.begin() + index * n, values.begin() + (index + 1) * n};
}

/// As a device makes a step, with one before it that is not to be made.
void step_on_device(
    Optimizer& optimizer,
    const at::Tensor& scalars,
    const at::Tensor& gradients,
    double gradient_scale,
    double learning_rate) {
  const at::Tensor scale = at::scalar_tensor(gradient_scale, at::kDouble);
  optimizer.step_where(
      at::scalar_tensor(false, at::kBool),
      at::full_like(gradients, std::numeric_limits<float>::quiet_NaN()),
      scale,
      7 * learning_rate,
      scalars);
  optimizer.step_where(
      at::scalar_tensor(true, at::kBool), gradients, scale, learning_rate, scalars);
}

/// Runs all steps of a case; every state must match after every one.
void follow(
    const testing::GoldenCase& golden,
    const OptimizerOptions& options,
    const std::map<std::string, std::string>& state_names,
    bool on_device) {
  const auto start = golden.values("param");
  const auto n = static_cast<int64_t>(start.size());
  const at::Tensor values = row(start, 0, n);
  Optimizer optimizer(options, values);
  const at::Tensor scalars = optimizer.scalars_on(at::kCPU);
  const auto rates = golden.values("lr");
  for (size_t i = 0; i < rates.size(); ++i) {
    const auto step = static_cast<int64_t>(i);
    // Twice the gradient, halved in the step.
    const at::Tensor gradients = at::mul(row(golden.values("grads"), step, n), 2);
    if (on_device)
      step_on_device(optimizer, scalars, gradients, 0.5, rates[i]);
    else
      optimizer.step(gradients, 0.5, rates[i]);
    EXPECT_LT(
        testing::golden_error(
            values.const_data_ptr<float>(), doubles(golden.values("params"), step, n)),
        kFloatTolerance)
        << golden.text("case") << " step " << i;
    for (const auto& [ours, theirs] : state_names)
      EXPECT_LT(
          testing::golden_error(
              optimizer.tensors().at(ours).const_data_ptr<float>(),
              doubles(golden.values(theirs), step, n)),
          kFloatTolerance)
          << golden.text("case") << " " << theirs << " step " << i;
  }
}

TEST(OptimizerGolden, AdamFollowsEveryCase) {
  for (const auto& file : testing::golden_files("adam")) {
    const testing::GoldenCase golden(file);
    OptimizerOptions options;
    options.beta1 = golden.number("beta1");
    options.beta2 = golden.number("beta2");
    options.epsilon = golden.number("eps");
    options.weight_decay = golden.number("weight_decay");
    for (const bool on_device : {false, true})
      follow(
          golden,
          options,
          {{"first_moment", "exp_avg"}, {"second_moment", "exp_avg_sq"}},
          on_device);
  }
}

TEST(OptimizerGolden, NagFollowsEveryCase) {
  for (const auto& file : testing::golden_files("nag")) {
    const testing::GoldenCase golden(file);
    OptimizerOptions options;
    options.kind = OptimizerKind::kNag;
    options.momentum = golden.number("momentum");
    options.weight_decay = golden.number("weight_decay");
    for (const bool on_device : {false, true})
      follow(golden, options, {{"momentum", "momentum_buffer"}}, on_device);
  }
}

TEST(OptimizerGolden, ClippingFollowsEveryCase) {
  for (const auto& file : testing::golden_files("clip_grad_norm")) {
    const testing::GoldenCase golden(file);
    std::vector<float> all;
    for (int i = 0; golden.contains(concat("grad.", i)); ++i)
      for (const double value : golden.values(concat("grad.", i)))
        all.push_back(static_cast<float>(value));
    const double norm = gradient_norm(at::tensor(all));
    EXPECT_NEAR(norm, golden.values("total_norm")[0], 1e-6 * norm) << file;
    EXPECT_NEAR(clip_factor(norm, golden.number("max_norm")), golden.values("factor")[0], 1e-6)
        << file;
  }
}

TEST(Optimizer, AStateCopiedOverGoesOnWithTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kNag}) {
    OptimizerOptions options;
    options.kind = kind;
    options.weight_decay = 0.01;
    const at::Tensor gradients = at::tensor({0.5f, -2.0f, 1e-4f});
    const at::Tensor values = at::tensor({1.0f, 2.0f, 3.0f});
    Optimizer optimizer(options, values);
    optimizer.step(gradients, 1, 0.1);
    optimizer.step(gradients, 1, 0.2);
    const at::Tensor other_values = values.clone();
    Optimizer other(options, other_values);
    for (const auto& [name, tensor] : other.tensors())
      tensor.copy_(optimizer.tensors().at(name));
    other.scalars() = optimizer.scalars();
    optimizer.step(gradients, 0.5, 0.05);
    other.step(gradients, 0.5, 0.05);
    EXPECT_TRUE(values.equal(other_values)) << enum_name(kind);
  }
}

TEST(Optimizer, TheNormIsNotFiniteExactlyWhenAnElementIsNot) {
  at::Tensor gradients = at::zeros({1000});
  EXPECT_EQ(gradient_norm(gradients), 0);
  gradients.fill_(1e30);
  EXPECT_TRUE(std::isfinite(gradient_norm(gradients)));
  gradients[777] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(gradient_norm(gradients)));
  gradients[777] = -std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(gradient_norm(gradients)));
}

}  // namespace
}  // namespace seqconv::internal
