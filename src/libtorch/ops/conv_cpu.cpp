#include <ATen/Functions.h>
#include <torch/library.h>

#include "kernels/conv.h"
#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/kernel_taps.h"

/// lightconv and dynamicconv on the CPU: arguments are checked, made dense and
/// handed to the kernels.
namespace seqconv::ops {
namespace {

using kernels::AccumulatorOf;
using kernels::ConvBackward;
using kernels::ConvForward;
using kernels::ConvStep;
using kernels::Execution;

/// Its few logits [H, K] are converted to the type that sums are kept in.
struct LightConvCpu : LightConvKind {
  static at::Tensor dense(const at::Tensor& logits) { return accumulated(logits); }
  /// Calls f with values of the storage types of x and of dense(logits).
  template <class F>
  static void dispatch(const at::Tensor& x, const at::Tensor&, const F& f) {
    dispatch_storage(
        x.scalar_type(), [&](auto value) { f(value, AccumulatorOf<decltype(value)>{}); });
  }
  template <class S, class L>
  static void run(const ConvForward<S, L>& args, const Execution& execution) {
    kernels::lightconv_forward<S>(args, execution);
  }
  template <class S, class L>
  static void run(const ConvBackward<S, L>& args, const Execution& execution) {
    kernels::lightconv_backward<S>(args, execution);
  }
  template <class S, class L>
  static void run(const ConvStep<S, L>& args, const Execution& execution) {
    kernels::lightconv_step<S>(args, execution);
  }
};

/// Its logits [B, T, H, K] are as large as x and read as they are.
struct DynamicConvCpu : DynamicConvKind {
  static at::Tensor dense(const at::Tensor& logits) { return logits; }
  template <class F>
  static void dispatch(const at::Tensor& x, const at::Tensor& logits, const F& f) {
    dispatch_storage_pair(x.scalar_type(), logits.scalar_type(), f);
  }
  template <class S, class L>
  static void run(const ConvForward<S, L>& args, const Execution& execution) {
    kernels::dynamicconv_forward<S, L>(args, execution);
  }
  template <class S, class L>
  static void run(const ConvBackward<S, L>& args, const Execution& execution) {
    kernels::dynamicconv_backward<S, L>(args, execution);
  }
  template <class S, class L>
  static void run(const ConvStep<S, L>& args, const Execution& execution) {
    kernels::dynamicconv_step<S, L>(args, execution);
  }
};

template <class Kind>
at::Tensor conv_cpu(
    const at::Tensor& x,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    int64_t padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = Kind::kForward;
  const ConvArguments args = {
      .op = name,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .bias = bias,
      .padding_left = padding_left,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges,
      .drop_p = drop_p,
      .drop_seed = drop_seed,
      .drop_mask = drop_mask,
      .lengths = lengths};
  check_conv(args);
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const KernelTaps taps(args);
  const at::Tensor dense = x.contiguous(), made = Kind::dense(taps.get());
  const at::Tensor added = accumulated_or_none(bias);
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
  Kind::dispatch(x, made, [&](auto storage, auto logit_storage) {
    using S = decltype(storage);
    using L = decltype(logit_storage);
    Kind::run(
        ConvForward<S, L>{
            .shape = conv_shape(x, logits, padding_left),
            .softmax = taps.softmax(),
            .renormalize_edges = renormalize_edges,
            .drop = drop.get(),
            .x = const_pointer<S>(dense),
            .logits = const_pointer<L>(made),
            .bias = const_pointer<AccumulatorOf<S>>(added),
            .lengths = valid.data(),
            .y = pointer<S>(y)},
        cpu_execution());
  });
  return y;
}

template <class Kind>
std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_backward_cpu(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& logits,
    GradientMask output_mask,
    int64_t padding_left,
    std::string_view normalization,
    bool renormalize_edges,
    double drop_p,
    const OptionalTensor& drop_seed,
    const OptionalTensor& drop_mask,
    const OptionalTensor& lengths) {
  const char* const name = Kind::kBackward;
  const ConvArguments args = {
      .op = name,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .padding_left = padding_left,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges,
      .drop_p = drop_p,
      .drop_seed = drop_seed,
      .drop_mask = drop_mask,
      .lengths = lengths};
  check_conv_backward(grad, args);
  const LengthValues valid(name, lengths, x);
  const DropValues drop(drop_p, drop_seed, drop_mask);
  const KernelTaps taps(args);
  const at::Tensor dense = x.contiguous(), made = Kind::dense(taps.get());
  const at::Tensor grad_y = grad.contiguous();
  const at::Tensor grad_x = empty_gradient(output_mask[0], x.sym_sizes(), x.options());
  const at::Tensor grad_logits = empty_gradient(output_mask[1], made.sym_sizes(), made.options());
  const at::Tensor grad_bias = empty_gradient(
      output_mask[2], {x.sym_size(2)}, x.options().dtype(accumulator_type(x.scalar_type())));
  Kind::dispatch(x, made, [&](auto storage, auto logit_storage) {
    using S = decltype(storage);
    using L = decltype(logit_storage);
    const auto shape = conv_shape(x, logits, padding_left);
    if (output_mask[0] || output_mask[1])
      Kind::run(
          ConvBackward<S, L>{
              .shape = shape,
              .softmax = taps.softmax(),
              .renormalize_edges = renormalize_edges,
              .drop = drop.get(),
              .x = const_pointer<S>(dense),
              .logits = const_pointer<L>(made),
              .lengths = valid.data(),
              .grad_y = const_pointer<S>(grad_y),
              .grad_x = pointer_if<S>(output_mask[0], grad_x),
              .grad_logits = pointer_if<L>(output_mask[1], grad_logits)},
          cpu_execution());
    if (output_mask[2])
      kernels::bias_gradient(
          shape,
          valid.data(),
          const_pointer<S>(grad_y),
          pointer<AccumulatorOf<S>>(grad_bias),
          cpu_execution());
  });
  return {grad_x, taps.grad_logits(grad_logits), grad_bias};
}

template <class Kind>
at::Tensor conv_step_cpu(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const OptionalTensor& bias,
    std::string_view normalization,
    bool renormalize_edges) {
  const char* const name = Kind::kStep;
  const ConvArguments args = {
      .op = name,
      .x = x,
      .logits_name = Kind::kLogits,
      .logits = logits,
      .bias = bias,
      .normalization = normalization,
      .renormalize_edges = renormalize_edges};
  check_conv_step(args, state, position);
  const KernelTaps taps(args);
  const at::Tensor dense = x.contiguous(), made = Kind::dense(taps.get());
  const at::Tensor added = accumulated_or_none(bias);
  const at::Tensor ring = state.contiguous();
  const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
  Kind::dispatch(x, made, [&](auto storage, auto logit_storage) {
    using S = decltype(storage);
    using L = decltype(logit_storage);
    Kind::run(
        ConvStep<S, L>{
            .shape = conv_shape(x, logits, logits.size(-1) - 1),
            .softmax = taps.softmax(),
            .renormalize_edges = renormalize_edges,
            .x = const_pointer<S>(dense),
            .logits = const_pointer<L>(made),
            .bias = const_pointer<AccumulatorOf<S>>(added),
            .state =
                {.data = pointer<S>(ring),
                 .slots = state.size(1),
                 .position = position_value(name, position)},
            .y = pointer<S>(y)},
        cpu_execution());
  });
  write_back(ring, state);
  return y;
}

template <class Kind>
void register_cpu(torch::Library& m) {
  m.impl(Kind::kForward, conv_cpu<Kind>);
  m.impl(Kind::kBackward, conv_backward_cpu<Kind>);
  m.impl(Kind::kStep, conv_step_cpu<Kind>);
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  register_cpu<LightConvCpu>(m);
  register_cpu<DynamicConvCpu>(m);
}

}  // namespace seqconv::ops
