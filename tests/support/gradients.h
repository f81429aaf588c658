#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "support/devices.h"
#include "support/golden.h"

/// Gradients: analytic, numerical, and their comparison.
namespace seqconv::internal::testing {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Copies that ask for a gradient; undefined tensors stay undefined.
inline std::vector<at::Tensor> leaves(const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& input : inputs)
    result.push_back(input.defined() ? input.detach().clone().requires_grad_(true) : input);
  return result;
}

/// {y, gradients of sum(y * grad_output) with respect to the defined inputs}.
struct Differentiated {
  at::Tensor y;
  std::vector<at::Tensor> grads;
};
inline Differentiated differentiate(
    const TensorFunction& function,
    const std::vector<at::Tensor>& inputs,
    const at::Tensor& grad_output) {
  const std::vector<at::Tensor> variables = leaves(inputs);
  std::vector<at::Tensor> asked;
  for (const at::Tensor& variable : variables)
    if (variable.defined())
      asked.push_back(variable);
  const at::Tensor y = function(variables);
  return {y.detach(), torch::autograd::grad({y}, asked, {grad_output})};
}

/// Compares every gradient with central differences (float64 inputs, which
/// operators take on the CPU alone).
inline void expect_numerical_gradients(
    const TensorFunction& function, const std::vector<at::Tensor>& inputs, double bound = 1e-7) {
  if (!test_device().is_cpu())
    GTEST_SKIP() << "central differences take float64: not on a CUDA device";
  constexpr double kStep = 1e-5;
  const at::Tensor weights = at::randn_like(function(inputs));
  const Differentiated analytic = differentiate(function, inputs, weights);
  size_t next = 0;
  for (const at::Tensor& input : inputs) {
    if (!input.defined())
      continue;
    const at::Tensor numeric = at::zeros_like(input);
    const at::Tensor flat = input.view({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double value = flat[i].item<double>();
      flat[i].fill_(value + kStep);
      const double above = (function(inputs) * weights).sum().item<double>();
      flat[i].fill_(value - kStep);
      const double below = (function(inputs) * weights).sum().item<double>();
      flat[i].fill_(value);
      numeric.view({-1})[i].fill_((above - below) / (2 * kStep));
    }
    EXPECT_LE(relative_error(analytic.grads[next], numeric), bound) << "input " << next;
    ++next;
  }
}

/// Compares the gradients of every gradient with central differences.
inline void expect_numerical_second_gradients(
    const TensorFunction& function, const std::vector<at::Tensor>& inputs, double bound = 1e-7) {
  const at::Tensor weights = at::randn_like(function(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      continue;
    SCOPED_TRACE(::testing::Message() << "gradient of input " << i);
    std::vector<at::Tensor> all = inputs;
    all.push_back(weights);
    // A gradient that does not depend on an input has one of zero there.
    const auto first = [&](const std::vector<at::Tensor>& in) {
      std::vector<at::Tensor> given(in.begin(), in.end() - 1);
      if (!given[i].requires_grad())
        given[i] = given[i].detach().clone().requires_grad_(true);
      const at::Tensor gradient = torch::autograd::grad(
          {function(given)},
          {given[i]},
          {in.back()},
          /*retain_graph=*/true,
          /*create_graph=*/true)[0];
      at::Tensor sum = gradient;
      for (const at::Tensor& input : in)
        if (input.defined())
          sum = sum + 0 * input.sum();
      return sum;
    };
    expect_numerical_gradients(first, all, bound);
  }
}

}  // namespace seqconv::internal::testing

/// `statement` throws a c10::Error whose message is `text`.
#define EXPECT_TENSOR_ERROR(statement, text)                          \
  do {                                                                \
    try {                                                             \
      (void)(statement);                                              \
      ADD_FAILURE() << "no error, wanted: " << (text);                \
    } catch (const c10::Error& error) {                               \
      EXPECT_EQ(std::string(error.what_without_backtrace()), (text)); \
    }                                                                 \
  } while (false)
