#include "libtorch/nn/flat_parameters.h"

#include <ATen/ops/zeros.h>

namespace seqconv::internal {
namespace {

constexpr int64_t kAlign = 16;  // one cache line of float32

int64_t aligned(int64_t count) {
  return (count + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& module) {
  at::NoGradGuard no_grad;
  int64_t size = 0;
  const auto parameters = module.named_parameters();
  auto options = at::dtype(at::kFloat);
  for (const auto& item : parameters) {
    const at::Tensor& value = item.value();
    TORCH_CHECK(
        value.scalar_type() == at::kFloat,
        "[flat_parameters] parameters must be float32, but ",
        item.key(),
        " is ",
        value.scalar_type());
    options = options.device(value.device());
    slots_.push_back({item.key(), value.sizes().vec(), size, value.numel()});
    size += aligned(value.numel());
  }
  values_ = at::zeros({size}, options);
  gradients_ = at::zeros({size}, options);
  size_t index = 0;
  for (const auto& item : parameters) {
    const ParameterSlot& slot = slots_[index++];
    at::Tensor parameter = item.value();
    at::Tensor view = values_.narrow(0, slot.offset, slot.count).view(slot.shape);
    view.copy_(parameter);
    parameter.set_data(view);
    parameter.mutable_grad() = gradients_.narrow(0, slot.offset, slot.count).view(slot.shape);
  }
}

int64_t FlatParameters::parameter_count() const {
  int64_t count = 0;
  for (const ParameterSlot& slot : slots_)
    count += slot.count;
  return count;
}

}  // namespace seqconv::internal
