#include <ATen/Functions.h>

#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/talk_ops.h"

namespace seqconv::ops {
namespace {

/// Offsets must not reach further back than the ring.
void check_reach(const TalkArguments& args, const at::Tensor& offset_left, int64_t slots) {
  const at::Tensor wide = accumulated(offset_left);
  dispatch_storage(wide.scalar_type(), [&](auto storage) {
    using A = decltype(storage);
    if constexpr (!std::is_same_v<A, kernels::BFloat16>) {
      const A* const values = const_pointer<A>(wide);
      for (int64_t i = 0; i < wide.numel(); ++i)
        SEQCONV_CHECK_OP(
            args.op,
            !(values[i] * static_cast<A>(args.max_left) > static_cast<A>(slots)),
            "offset_left must not exceed max_offset = {} (state of {} inputs, max_left = {}), but "
            "got {}",
            static_cast<double>(slots) / static_cast<double>(args.max_left),
            slots,
            args.max_left,
            values[i]);
    }
  });
}

struct TalkCpu : TalkKind {
  static at::Tensor forward(const TalkArguments& args) {
    check(args);
    const LengthValues valid(args.op, args.lengths, args.x);
    const at::Tensor x = args.x.contiguous(), left = args.offset_left.contiguous();
    const at::Tensor right = dense_or_none(args.offset_right);
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [B, T, C]
    dispatch_storage_pair(x.scalar_type(), left.scalar_type(), [&]<class S, class O>(S, O) {
      kernels::talk_forward<S, O>(
          {.shape = talk_shape(args),
           .x = const_pointer<S>(x),
           .offset_left = const_pointer<O>(left),
           .offset_right = const_pointer<O>(right),
           .lengths = valid.data(),
           .y = pointer<S>(y)},
          cpu_execution());
    });
    return y;
  }

  static Gradients backward(
      const TalkArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    const LengthValues valid(args.op, args.lengths, args.x);
    const at::Tensor x = args.x.contiguous(), left = args.offset_left.contiguous();
    const at::Tensor right = dense_or_none(args.offset_right);
    const at::Tensor grad_y = grad.contiguous();
    const Gradients grads = empty_gradients(args, wanted);
    dispatch_storage_pair(x.scalar_type(), left.scalar_type(), [&]<class S, class O>(S, O) {
      const auto& [grad_x, grad_left, grad_right] = grads;
      kernels::talk_backward<S, O>(
          {.shape = talk_shape(args),
           .x = const_pointer<S>(x),
           .offset_left = const_pointer<O>(left),
           .offset_right = const_pointer<O>(right),
           .lengths = valid.data(),
           .grad_y = const_pointer<S>(grad_y),
           .grad_x = pointer_if<S>(wanted[0], grad_x),
           .grad_offset_left = pointer_if<O>(wanted[1], grad_left),
           .grad_offset_right = pointer_if<O>(wanted[2] && right.defined(), grad_right)},
          cpu_execution());
    });
    return grads;
  }

  static at::Tensor step(const TalkArguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    const at::Tensor x = args.x.contiguous(), left = args.offset_left.contiguous();
    check_reach(args, left, state.size(1));
    const at::Tensor ring = state.contiguous();
    const at::Tensor y = at::empty(x.sizes(), x.options());  // [N, T', C]
    dispatch_storage_pair(x.scalar_type(), left.scalar_type(), [&]<class S, class O>(S, O) {
      kernels::talk_step<S, O>(
          {.shape = talk_shape(args),
           .x = const_pointer<S>(x),
           .offset_left = const_pointer<O>(left),
           .state =
               {.data = pointer<S>(ring),
                .slots = state.size(1),
                .position = position_value(args.op, position)},
           .y = pointer<S>(y)},
          cpu_execution());
    });
    write_back(ring, state);
    return y;
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  register_impl<TalkCpu>(m);
}

}  // namespace seqconv::ops
