#include <ATen/Functions.h>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/talk_ops.h"

/// lightconv, dynamicconv and talk without values: shapes and types.
namespace seqconv::ops {
namespace {

template <class Kind>
struct Meta : Kind {
  using Arguments = typename Kind::Arguments;

  static at::Tensor forward(const Arguments& args) {
    check(args);
    return at::empty_symint(args.x.sym_sizes(), args.x.options());
  }

  static Gradients backward(
      const Arguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    return empty_gradients(args, wanted);
  }

  static at::Tensor step(const Arguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    return at::empty_symint(args.x.sym_sizes(), args.x.options());
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  register_impl<Meta<LightConvKind>>(m);
  register_impl<Meta<DynamicConvKind>>(m);
  register_impl<Meta<TalkKind>>(m);
}

}  // namespace seqconv::ops
