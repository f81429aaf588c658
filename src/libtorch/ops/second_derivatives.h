#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <functional>

/// Derivatives of gradients, by the definition of an operator in tensor algebra: no kernel is
/// made for them.
namespace seqconv::ops {

using DefinedOperator = std::function<at::Tensor(const torch::autograd::variable_list&)>;

/// Gradients of the gradients of an operator y of `inputs` (undefined: none), of which those
/// with `wanted` were computed from `grad`, that of y. `cotangents` are those of these gradients,
/// undefined where nothing depends on one. Returns the gradients of `grad` and of all inputs that
/// require one, the others undefined; in grad mode they can be differentiated again.
torch::autograd::variable_list differentiate_gradients(
    const DefinedOperator& definition,
    const at::Tensor& grad,
    const torch::autograd::variable_list& inputs,
    const std::vector<bool>& wanted,
    const torch::autograd::variable_list& cotangents);

}  // namespace seqconv::ops
