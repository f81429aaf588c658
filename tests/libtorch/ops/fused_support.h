#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"

namespace seqconv::ops::testing {

/// Every test draws the same numbers in every run and in any order.
class SeedEveryTest : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { at::manual_seed(1); }
};
inline const bool kSeeded = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SeedEveryTest);
  return true;
}();

/// Reproducible standard normal numbers.
inline at::Tensor random_normal(at::IntArrayRef shape, at::ScalarType type) {
  return at::randn(shape, at::TensorOptions(at::kDouble)).to(type);
}

/// 0 or 1 per element as (seed, flat index) say, in x's type.
inline at::Tensor keep_mask(const at::Tensor& x, double p, uint64_t seed) {
  at::Tensor mask = at::empty(x.sizes(), at::kDouble);
  double* value = mask.mutable_data_ptr<double>();
  for (int64_t i = 0; i < mask.numel(); ++i)
    value[i] = random_word(seed, i) >= drop_threshold(p) ? 1.0 : 0.0;
  return mask.to(x.scalar_type());
}

inline at::Tensor plain_dropout(const at::Tensor& x, double p, uint64_t seed) {
  return x * keep_mask(x, p, seed) / (1 - p);
}

/// max |got - want| / max(1, max |want|).
inline double error(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0)
    return 0;
  const at::Tensor g = got.detach().to(at::kDouble);
  const at::Tensor w = want.detach().to(at::kDouble);
  return (g - w).abs().max().item<double>() / std::max(1.0, w.abs().max().item<double>());
}

using Inputs = std::vector<at::Tensor>;
using Call = std::function<at::Tensor(const Inputs&)>;

/// Output and gradients of sum(call(inputs) * g) for a g that depends only on
/// the shape of the output.
inline std::vector<at::Tensor> with_gradients(const Call& call, const Inputs& inputs) {
  Inputs leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_());
  const at::Tensor y = call(leaves);
  const at::Tensor g =
      at::linspace(-1, 1.5, y.numel(), at::kDouble).sin().view(y.sizes()).to(y.scalar_type());
  (y * g).sum().backward();
  std::vector<at::Tensor> out = {y.detach()};
  for (const at::Tensor& leaf : leaves)
    out.push_back(leaf.grad());
  return out;
}

/// Both calls agree in output and every gradient.
inline void expect_same(const Call& got, const Call& want, const Inputs& inputs, double tolerance) {
  const auto a = with_gradients(got, inputs);
  const auto b = with_gradients(want, inputs);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LE(error(a[i], b[i]), tolerance)
        << (i == 0 ? "output" : "gradient of input " + std::to_string(i - 1));
}

/// Central differences of every input element against autograd, in double.
inline void expect_numerical_gradients(const Call& call, const Inputs& inputs) {
  const auto analytic = with_gradients(call, inputs);
  const auto value = [&](const Inputs& at_inputs) {
    const at::AutoGradMode no_grad(/*enabled=*/false);
    const at::Tensor y = call(at_inputs);
    const at::Tensor g = at::linspace(-1, 1.5, y.numel(), at::kDouble).sin().view(y.sizes());
    return (y * g).sum().item<double>();
  };
  constexpr double kStep = 1e-6;
  for (size_t k = 0; k < inputs.size(); ++k)
    for (int64_t i = 0; i < inputs[k].numel(); ++i) {
      Inputs moved;
      for (const at::Tensor& input : inputs)
        moved.push_back(input.detach().clone());
      double* element = moved[k].mutable_data_ptr<double>() + i;
      const double centre = *element;
      *element = centre + kStep;
      const double above = value(moved);
      *element = centre - kStep;
      const double below = value(moved);
      const double want = (above - below) / (2 * kStep);
      const double got = analytic[k + 1].view({-1})[i].item<double>();
      ASSERT_NEAR(got, want, 1e-7 * std::max(1.0, std::abs(want)))
          << "input " << k << ", element " << i;
    }
}

/// The call throws a c10::Error whose message holds `text`.
inline void expect_error(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    FAIL() << "no error, wanted: " << text;
  } catch (const c10::Error& e) {
    EXPECT_NE(std::string(e.what_without_backtrace()).find(text), std::string::npos)
        << e.what_without_backtrace();
  }
}

/// Sets LibTorch's thread count for one scope.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace seqconv::ops::testing
