#include "seqconv/ops/lightconv.h"

#include <torch/library.h>

#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/conv_ops.h"

namespace seqconv::ops {

at::Tensor lightconv(
    const at::Tensor& x, const at::Tensor& weight, const LightConvFuncOptions& options) {
  static const auto op = find_op<ConvSignature>(LightConvKind::kForward);
  return op.call(
      x,
      weight,
      options.bias,
      options.padding_left,
      enum_name(options.normalization),
      options.renormalize_edges,
      options.drop.p,
      options.drop.seed,
      options.drop.mask,
      options.lengths);
}

at::Tensor lightconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    const ConvStepOptions& options) {
  static const auto op = find_op<ConvStepSignature>(LightConvKind::kStep);
  return op.call(
      x,
      state,
      position,
      weight,
      options.bias,
      enum_name(options.normalization),
      options.renormalize_edges);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("lightconv(Tensor x, Tensor weight, Tensor? bias=None, *, SymInt padding_left, str "
        "normalization='softmax', bool renormalize_edges=False, float drop_p=0.0, Tensor? "
        "drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None) -> Tensor");
  m.def("lightconv_backward(Tensor grad, Tensor x, Tensor weight, *, bool[3] output_mask, SymInt "
        "padding_left, str normalization='softmax', bool renormalize_edges=False, float "
        "drop_p=0.0, Tensor? drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None) -> "
        "(Tensor grad_x, Tensor grad_weight, Tensor grad_bias)");
  m.def("lightconv_step(Tensor x, Tensor(a!) state, Tensor position, Tensor weight, Tensor? "
        "bias=None, *, str normalization='softmax', bool renormalize_edges=False) -> Tensor");
}

}  // namespace seqconv::ops
