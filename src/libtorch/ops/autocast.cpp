#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/cumulative_average_ops.h"
#include "libtorch/ops/talk_ops.h"

/// The operators under torch.autocast. x takes the type that is asked for;
/// weights, logits and offsets that are float32 stay so beside it, which the
/// kernels read as fast and which is more precise. A step takes the type of its
/// state (not so a cumulative average, whose state has one type for all). The
/// backward operators get what forward has saved and need nothing.
namespace seqconv::ops {
namespace {

using c10::impl::ExcludeDispatchKeyGuard;

/// The type asked for where the device's kernels know it, else float32 (float16
/// on the CPU).
at::ScalarType compute_type(at::DeviceType device) {
  const at::ScalarType wanted = at::autocast::get_autocast_dtype(device);
  const bool known = wanted == at::kBFloat16 || (wanted == at::kHalf && device == at::kCUDA);
  return known ? wanted : at::kFloat;
}

/// float64 stays, as everywhere in autocast.
template <at::DeviceType device>
at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  return at::autocast::cached_cast(type, tensor, device);
}

template <at::DeviceType device>
at::Tensor cast_beside(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.scalar_type() == at::kFloat ? tensor : cast<device>(tensor, type);
}

template <at::DeviceType device>
OptionalTensor cast_beside(const OptionalTensor& tensor, at::ScalarType type) {
  return tensor ? OptionalTensor(cast_beside<device>(*tensor, type)) : std::nullopt;
}

template <class Kind, at::DeviceType device>
at::Tensor conv_autocast(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    c10::SymInt padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = compute_type(device);
  static const auto op = find_op<ConvSignature>(Kind::kForward);
  return op.call(
      cast<device>(x, type),
      cast_beside<device>(logits, type),
      cast_beside<device>(bias, type),
      std::move(padding_left),
      normalization,
      renormalize_edges,
      drop_p,
      drop_seed,
      drop_mask,
      lengths);
}

template <class Kind, at::DeviceType device>
at::Tensor conv_step_autocast(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = state.scalar_type();
  static const auto op = find_op<ConvStepSignature>(Kind::kStep);
  return op.call(
      cast<device>(x, type),
      state,
      position,
      cast_beside<device>(logits, type),
      cast_beside<device>(bias, type),
      normalization,
      renormalize_edges);
}

template <at::DeviceType device>
at::Tensor talk_autocast(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const OptionalTensor& offset_right,
    int64_t max_left,
    int64_t max_right,
    const OptionalTensor& lengths) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = compute_type(device);
  static const auto op = find_op<TalkSignature>("talk");
  return op.call(
      cast<device>(x, type),
      cast_beside<device>(offset_left, type),
      cast_beside<device>(offset_right, type),
      max_left,
      max_right,
      lengths);
}

template <at::DeviceType device>
at::Tensor talk_step_autocast(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& offset_left,
    int64_t max_left) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = state.scalar_type();
  static const auto op = find_op<TalkStepSignature>("talk_step");
  return op.call(
      cast<device>(x, type), state, position, cast_beside<device>(offset_left, type), max_left);
}

template <at::DeviceType device>
at::Tensor average_autocast(const at::Tensor& x, const OptionalTensor& lengths) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  static const auto op = find_op<AverageSignature>(kAverage);
  return op.call(cast<device>(x, compute_type(device)), lengths);
}

template <at::DeviceType device>
at::Tensor average_step_autocast(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  static const auto op = find_op<AverageStepSignature>(kAverageStep);
  return op.call(cast<device>(x, compute_type(device)), state, position);
}

template <class Kind, at::DeviceType device>
void register_conv_autocast(torch::Library& m) {
  m.impl(Kind::kForward, conv_autocast<Kind, device>);
  m.impl(Kind::kStep, conv_step_autocast<Kind, device>);
}

template <at::DeviceType device>
void register_autocast(torch::Library& m) {
  register_conv_autocast<LightConvKind, device>(m);
  register_conv_autocast<DynamicConvKind, device>(m);
  m.impl("talk", talk_autocast<device>);
  m.impl("talk_step", talk_step_autocast<device>);
  m.impl(kAverage, average_autocast<device>);
  m.impl(kAverageStep, average_step_autocast<device>);
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, AutocastCPU, m) {
  register_autocast<at::kCPU>(m);
}

TORCH_LIBRARY_IMPL(seqconv, AutocastCUDA, m) {
  register_autocast<at::kCUDA>(m);
}

}  // namespace seqconv::ops
