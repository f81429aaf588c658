#include <ATen/autocast_mode.h>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/cumulative_average_ops.h"
#include "libtorch/ops/short_conv_ops.h"
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
struct Autocast : Kind {
  using Arguments = typename Kind::Arguments;

  static at::Tensor forward(const Arguments& args) {
    const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::ScalarType type = compute_type(device);
    const auto [x, second, third] = args.inputs();
    return Kind::Dispatch::forward(args.with(
        cast<device>(x, type),
        cast_beside<device>(second, type),
        cast_beside<device>(third, type)));
  }

  static at::Tensor step(const Arguments& args, at::Tensor& state, const at::Tensor& position) {
    const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::ScalarType type = state.scalar_type();
    const auto [x, second, third] = args.inputs();
    return Kind::Dispatch::step(
        args.with(
            cast<device>(x, type),
            cast_beside<device>(second, type),
            cast_beside<device>(third, type)),
        state,
        position);
  }
};

/// An initial state takes x's type with it.
template <at::DeviceType device>
struct ShortConvAutocast : ShortConvKind {
  static at::Tensor forward(const ShortConvArguments& args) {
    const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::ScalarType type = compute_type(device);
    const at::Tensor x = cast<device>(args.x, type);
    const auto weight = cast_beside<device>(args.weight, type),
               dynamic = cast_beside<device>(args.dynamic, type),
               bias = cast_beside<device>(args.bias, type);
    const OptionalTensor state =
        args.initial_state ? OptionalTensor(cast<device>(*args.initial_state, type)) : std::nullopt;
    return ShortConvDispatch::forward(
        {.op = args.op,
         .x = x,
         .weight = weight,
         .dynamic = dynamic,
         .bias = bias,
         .initial_state = state,
         .dilation = args.dilation,
         .padding_left = args.padding_left,
         .activation = args.activation,
         .residual = args.residual,
         .normalization = args.normalization,
         .renormalize_edges = args.renormalize_edges,
         .drop = args.drop,
         .lengths = args.lengths,
         .cu_seqlens = args.cu_seqlens,
         .seq_idx = args.seq_idx});
  }

  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::ScalarType type = ring.scalar_type();
    const at::Tensor x = cast<device>(args.x, type);
    const auto weight = cast_beside<device>(args.weight, type),
               dynamic = cast_beside<device>(args.dynamic, type),
               bias = cast_beside<device>(args.bias, type);
    return ShortConvDispatch::step(
        {x,
         weight,
         dynamic,
         bias,
         args.dilation,
         args.activation,
         args.residual,
         args.normalization,
         args.renormalize_edges,
         args.state_indices,
         args.lengths},
        ring,
        positions);
  }
};

template <at::DeviceType device>
at::Tensor average_autocast(const at::Tensor& x, const OptionalTensor& lengths) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return average_op().call(cast<device>(x, compute_type(device)), lengths);
}

template <at::DeviceType device>
at::Tensor average_step_autocast(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  const ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return average_step_op().call(cast<device>(x, compute_type(device)), state, position);
}

template <at::DeviceType device>
void register_autocast(torch::Library& m) {
  register_impl<Autocast<LightConvKind, device>>(m);
  register_impl<Autocast<DynamicConvKind, device>>(m);
  register_impl<Autocast<TalkKind, device>>(m);
  register_impl<ShortConvAutocast<device>>(m);
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
