#include <ATen/Functions.h>

#include "kernels/conv.h"
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

/// Its few logits [H, K] are converted to the type that sums are kept in.
struct LightConvCpu : LightConvKind {
  static at::Tensor dense(const at::Tensor& logits) { return accumulated(logits); }
  /// Calls f with values of the storage types of x and of dense(logits).
  template <class F>
  static void dispatch(const at::Tensor& x, const at::Tensor&, const F& f) {
    dispatch_storage(x.scalar_type(), [&]<class S>(S value) { f(value, AccumulatorOf<S>{}); });
  }
  template <class S, class L>
  static void run(const ConvForward<S, L>& args) {
    kernels::lightconv_forward<S>(args, cpu_execution());
  }
  template <class S, class L>
  static void run(const ConvBackward<S, L>& args) {
    kernels::lightconv_backward<S>(args, cpu_execution());
  }
  template <class S, class L>
  static void run(const ConvStep<S, L>& args) {
    kernels::lightconv_step<S>(args, cpu_execution());
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
  static void run(const ConvForward<S, L>& args) {
    kernels::dynamicconv_forward<S, L>(args, cpu_execution());
  }
  template <class S, class L>
  static void run(const ConvBackward<S, L>& args) {
    kernels::dynamicconv_backward<S, L>(args, cpu_execution());
  }
  template <class S, class L>
  static void run(const ConvStep<S, L>& args) {
    kernels::dynamicconv_step<S, L>(args, cpu_execution());
  }
};

template <class Kind>
struct ConvCpu : Kind {
  static at::Tensor forward(const ConvArguments& args) {
    check(args);
    const LengthValues valid(args.op, args.lengths, args.x);
    const DropValues drop(args.drop);
    const KernelTaps taps(args);
    const at::Tensor x = args.x.contiguous(), logits = Kind::dense(taps.get());
    const at::Tensor bias = accumulated_or_none(args.bias);
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
    Kind::dispatch(x, logits, [&]<class S, class L>(S, L) {
      Kind::run(ConvForward<S, L>{
          .shape = conv_shape(args),
          .softmax = taps.softmax(),
          .renormalize_edges = args.renormalize_edges,
          .drop = drop.get(),
          .x = const_pointer<S>(x),
          .logits = const_pointer<L>(logits),
          .bias = const_pointer<AccumulatorOf<S>>(bias),
          .lengths = valid.data(),
          .y = pointer<S>(y)});
    });
    return y;
  }

  static Gradients backward(
      const ConvArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    const LengthValues valid(args.op, args.lengths, args.x);
    const DropValues drop(args.drop);
    const KernelTaps taps(args);
    const at::Tensor x = args.x.contiguous(), logits = Kind::dense(taps.get());
    const at::Tensor grad_y = grad.contiguous();
    const auto [grad_x, grad_logits, grad_bias] = empty_gradients(args, logits, wanted);
    const auto shape = conv_shape(args);
    Kind::dispatch(x, logits, [&]<class S, class L>(S, L) {
      if (wanted[0] || wanted[1])
        Kind::run(ConvBackward<S, L>{
            .shape = shape,
            .softmax = taps.softmax(),
            .renormalize_edges = args.renormalize_edges,
            .drop = drop.get(),
            .x = const_pointer<S>(x),
            .logits = const_pointer<L>(logits),
            .lengths = valid.data(),
            .grad_y = const_pointer<S>(grad_y),
            .grad_x = pointer_if<S>(wanted[0], grad_x),
            .grad_logits = pointer_if<L>(wanted[1], grad_logits)});
      if (wanted[2]) {
        auto* const sums = pointer<AccumulatorOf<S>>(grad_bias);
        kernels::bias_gradient(
            shape,
            valid.data(),
            /*offsets=*/nullptr,
            const_pointer<S>(grad_y),
            sums,
            cpu_execution());
      }
    });
    return {grad_x, taps.grad_logits(grad_logits), grad_bias};
  }

  static at::Tensor step(const ConvArguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    const KernelTaps taps(args);
    const at::Tensor x = args.x.contiguous(), logits = Kind::dense(taps.get());
    const at::Tensor bias = accumulated_or_none(args.bias);
    const at::Tensor ring = state.contiguous();
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
    auto shape = conv_shape(args);
    shape.padding_left = shape.kernel_size - 1;
    Kind::dispatch(x, logits, [&]<class S, class L>(S, L) {
      Kind::run(ConvStep<S, L>{
          .shape = shape,
          .softmax = taps.softmax(),
          .renormalize_edges = args.renormalize_edges,
          .x = const_pointer<S>(x),
          .logits = const_pointer<L>(logits),
          .bias = const_pointer<AccumulatorOf<S>>(bias),
          .state =
              {.data = pointer<S>(ring),
               .slots = state.size(1),
               .position = position_value(args.op, position)},
          .y = pointer<S>(y)});
    });
    write_back(ring, state);
    return y;
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  register_impl<ConvCpu<LightConvCpu>>(m);
  register_impl<ConvCpu<DynamicConvCpu>>(m);
}

}  // namespace seqconv::ops
