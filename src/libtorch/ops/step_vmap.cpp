#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <torch/library.h>

#include <vector>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/cumulative_average_ops.h"
#include "libtorch/ops/short_conv_ops.h"
#include "libtorch/ops/talk_ops.h"

/// Steps under torch.vmap. Its own loop takes no operator that changes one of
/// its arguments and returns something else.
namespace seqconv::ops {
namespace {

using torch::jit::Stack;

/// An argument of a mapped call: one for every element, or one for all.
class MappedArgument {
 public:
  MappedArgument(c10::IValue value, int64_t level) : value_(std::move(value)) {
    if (value_.isTensor())
      std::tie(tensor_, axis_) = at::functorch::unwrapTensorAtLevel(value_.toTensor(), level);
  }
  bool is_mapped() const { return axis_.has_value(); }
  int64_t count() const { return tensor_.size(*axis_); }

  /// The tensor of element i: a view, through which a state is changed.
  c10::IValue at(int64_t i) const {
    return is_mapped() ? c10::IValue(tensor_.select(*axis_, i)) : value_;
  }
  /// Room for the results of all elements, of which there are none.
  at::Tensor none() const {
    return is_mapped() ? at::empty_like(tensor_).movedim(*axis_, 0)
                       : at::empty_like(tensor_).unsqueeze(0).narrow(0, 0, 0);
  }

 private:
  c10::IValue value_;
  at::Tensor tensor_;
  std::optional<int64_t> axis_;
};

std::vector<MappedArgument> pop_arguments(
    const c10::OperatorHandle& op, Stack& stack, int64_t level) {
  std::vector<MappedArgument> arguments;
  for (c10::IValue& value : torch::jit::pop(stack, op.schema().arguments().size()))
    arguments.emplace_back(std::move(value), level);
  return arguments;
}

/// Any step: makes it for one element after the other. All have the arguments
/// (x, state, ...) and the result y, of x's shape.
void step_mapped(const c10::OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
  const std::string& full = op.schema().name();  // seqconv::NAME
  const std::string name = full.substr(full.rfind(':') + 1);
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  SEQCONV_CHECK_OP(
      name, layer.has_value(), "tensors of torch.vmap must be used within it, but got one outside");
  const int64_t level = layer->layerId();
  const auto arguments = pop_arguments(op, *stack, level);
  const MappedArgument *const x = &arguments[0], *const state = &arguments[1];
  const MappedArgument* mapped = nullptr;
  for (const MappedArgument& argument : arguments)
    if (argument.is_mapped())
      mapped = &argument;
  if (mapped == nullptr) {
    for (const MappedArgument& argument : arguments)
      stack->push_back(argument.at(0));
    return op.callBoxed(stack);
  }
  SEQCONV_CHECK_OP(
      name,
      state->is_mapped(),
      "state must be mapped by torch.vmap, since it is changed in place, but got one for all");
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < mapped->count(); ++i) {
    for (const MappedArgument& argument : arguments)
      stack->push_back(argument.at(i));
    op.callBoxed(stack);
    outputs.push_back(torch::jit::pop(*stack).toTensor());
  }
  const at::Tensor y = outputs.empty() ? x->none() : at::stack(outputs);
  stack->push_back(at::functorch::makeBatched(y, 0, level));
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, FuncTorchBatched, m) {
  for (const char* const name :
       {LightConvKind::kStep,
        DynamicConvKind::kStep,
        TalkKind::kStep,
        kAverageStep,
        kShortConvStep})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&step_mapped>());
}

}  // namespace seqconv::ops
