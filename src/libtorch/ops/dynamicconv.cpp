#include "seqconv/ops/dynamicconv.h"

#include <torch/library.h>

#include "libtorch/ops/conv_kind.h"
#include "libtorch/ops/conv_ops.h"

namespace seqconv::ops {

at::Tensor dynamicconv(
    const at::Tensor& x, const at::Tensor& logits, const DynamicConvFuncOptions& options) {
  static const auto op = find_op<ConvSignature>(DynamicConvKind::kForward);
  return op.call(
      x,
      logits,
      options.bias,
      options.padding_left,
      enum_name(options.normalization),
      options.renormalize_edges,
      options.drop.p,
      options.drop.seed,
      options.drop.mask,
      options.lengths);
}

at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const ConvStepOptions& options) {
  static const auto op = find_op<ConvStepSignature>(DynamicConvKind::kStep);
  return op.call(
      x,
      state,
      position,
      logits,
      options.bias,
      enum_name(options.normalization),
      options.renormalize_edges);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("dynamicconv(Tensor x, Tensor logits, Tensor? bias=None, *, SymInt padding_left, str "
        "normalization='softmax', bool renormalize_edges=False, float drop_p=0.0, Tensor? "
        "drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None) -> Tensor");
  m.def("dynamicconv_backward(Tensor grad, Tensor x, Tensor logits, *, bool[3] output_mask, SymInt "
        "padding_left, str normalization='softmax', bool renormalize_edges=False, float "
        "drop_p=0.0, Tensor? drop_seed=None, Tensor? drop_mask=None, Tensor? lengths=None) -> "
        "(Tensor grad_x, Tensor grad_logits, Tensor grad_bias)");
  m.def("dynamicconv_step(Tensor x, Tensor(a!) state, Tensor position, Tensor logits, Tensor? "
        "bias=None, *, str normalization='softmax', bool renormalize_edges=False) -> Tensor");
}

}  // namespace seqconv::ops
