#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "seqconv/ops/cumulative_average.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"
#include "support/devices.h"

/// The operators on the present device of the tests (support/devices.h), of
/// tensors that live on the CPU and with results that do. A CUDA device takes
/// no float64: there it is float32, and results are float64 again.
namespace seqconv::ops::device {
using namespace internal;

/// On the present device, float64 as it is.
inline at::Tensor moved_there(const at::Tensor& tensor) {
  return tensor.to(testing::test_device());
}
/// On the present device, with gaps between elements where it has some here.
inline at::Tensor there(const at::Tensor& tensor) {
  const at::Device device = testing::test_device();
  if (!tensor.defined() || tensor.device() == device)
    return tensor;
  const at::ScalarType type =
      tensor.scalar_type() == at::kDouble ? at::kFloat : tensor.scalar_type();
  const at::Tensor moved = tensor.to(device, type);
  return tensor.is_contiguous() || tensor.requires_grad()
      ? moved
      : at::stack({moved, moved}, -1).select(-1, 1);
}
inline std::optional<at::Tensor> there(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(there(*tensor)) : std::nullopt;
}
inline DropConnect there(const DropConnect& drop) {
  return {drop.p, there(drop.seed), there(drop.mask)};
}
inline ConvOptions there(ConvOptions options) {
  options.drop = there(options.drop);
  options.bias = there(options.bias);
  options.lengths = there(options.lengths);
  return options;
}
/// A result for the input x.
inline at::Tensor back(const at::Tensor& result, const at::Tensor& x) {
  return result.to(at::kCPU, x.scalar_type());
}

inline at::Tensor lightconv(
    const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  return back(ops::lightconv(there(x), there(weight), there(options)), x);
}
inline at::Tensor dynamicconv(
    const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options) {
  return back(ops::dynamicconv(there(x), there(logits), there(options)), x);
}
inline at::Tensor talk(
    const at::Tensor& x,
    const at::Tensor& left,
    const std::optional<at::Tensor>& right,
    TalkOptions options) {
  options.lengths = there(options.lengths);
  return back(ops::talk(there(x), there(left), there(right), options), x);
}
inline at::Tensor cumulative_average(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths = {}) {
  return back(ops::cumulative_average(there(x), there(lengths)), x);
}

/// Runs step(moved), the state on the device, for the inputs x, and brings the
/// state back.
template <class Step>
at::Tensor with_state(const at::Tensor& x, at::Tensor& state, at::Tensor moved, const Step& step) {
  const at::Tensor y = back(step(moved), x);
  if (!moved.is_same(state))
    state.copy_(moved);
  return y;
}
inline at::Tensor lightconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    ConvStepOptions options) {
  options.bias = there(options.bias);
  return with_state(x, state, there(state), [&](at::Tensor& moved) {
    return ops::lightconv_step(there(x), moved, there(position), there(weight), options);
  });
}
inline at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    ConvStepOptions options) {
  options.bias = there(options.bias);
  return with_state(x, state, there(state), [&](at::Tensor& moved) {
    return ops::dynamicconv_step(there(x), moved, there(position), there(logits), options);
  });
}
inline at::Tensor talk_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& left,
    int64_t max_left) {
  return with_state(x, state, there(state), [&](at::Tensor& moved) {
    return ops::talk_step(there(x), moved, there(position), there(left), max_left);
  });
}
inline at::Tensor cumulative_average_step(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  return with_state(x, state, moved_there(state), [&](at::Tensor& moved) {
    return ops::cumulative_average_step(there(x), moved, there(position));
  });
}

}  // namespace seqconv::ops::device
