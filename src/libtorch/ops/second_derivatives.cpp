#include "libtorch/ops/second_derivatives.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace seqconv::ops {

using torch::autograd::variable_list;

namespace {

/// The tensor as an input of its own: what else is made of it does not count.
at::Tensor input_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.alias() : tensor;
}

}  // namespace

variable_list differentiate_gradients(
    const DefinedOperator& definition,
    const at::Tensor& grad,
    const variable_list& inputs,
    const std::vector<bool>& wanted,
    const variable_list& cotangents) {
  const bool again = c10::GradMode::is_enabled();
  const at::AutoGradMode differentiable(true);
  const at::Tensor own_grad = input_of(grad);
  variable_list own, asked, weights, firsts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(input_of(inputs[i]));
    if (!wanted[i] || !cotangents[i].defined())
      continue;
    if (!own[i].requires_grad())  // a gradient that was asked for by itself
      own[i] = own[i].detach().requires_grad_(true);
    asked.push_back(own[i]);
    weights.push_back(cotangents[i]);
  }
  variable_list gradients(inputs.size() + 1);
  if (asked.empty())
    return gradients;
  firsts = torch::autograd::grad(
      {definition(own)}, asked, {own_grad}, /*retain_graph=*/true, /*create_graph=*/true);
  // Tensors whose gradients are asked for now, and places of these.
  variable_list at;
  std::vector<size_t> places;
  for (size_t i = 0; i <= inputs.size(); ++i) {
    const at::Tensor& of = i == 0 ? grad : inputs[i - 1];
    if (!of.defined() || !of.requires_grad())
      continue;
    at.push_back(i == 0 ? own_grad : own[i - 1]);
    places.push_back(i);
  }
  // A gradient of nothing that is asked for is constant.
  variable_list outputs, directions;
  for (size_t i = 0; i < firsts.size(); ++i)
    if (firsts[i].defined() && firsts[i].requires_grad()) {
      outputs.push_back(firsts[i]);
      directions.push_back(weights[i]);
    }
  if (outputs.empty() || at.empty())
    return gradients;
  const auto seconds = torch::autograd::grad(
      outputs, at, directions, /*retain_graph=*/again, again, /*allow_unused=*/true);
  for (size_t i = 0; i < places.size(); ++i)
    gradients[places[i]] = seconds[i];
  return gradients;
}

}  // namespace seqconv::ops
