#include "libtorch/ops/kernel_taps.h"

#include <ATen/Functions.h>

namespace seqconv::ops {
namespace {

/// Logits that are zero at padding: what lies there must not become a gradient
/// that is not a number.
at::Tensor real_logits(const ConvArguments& args) {
  if (args.logits.dim() < 4 || !args.lengths)
    return args.logits;
  const at::Tensor padding = length_mask(args.x, *args.lengths).eq(0);
  return args.logits.masked_fill(padding.unsqueeze(3), 0);  // [B, T, H, K]
}

}  // namespace

KernelTaps::KernelTaps(const ConvArguments& args)
    : normalization_(parse_normalization(args.op, args.normalization)),
      type_(args.logits.scalar_type()) {
  if (normalized_before()) {
    logits_ = real_logits(args);
    taps_ = normalize_reference(logits_, normalization_).contiguous();
  } else {
    taps_ = args.logits.contiguous();
  }
}

at::Tensor KernelTaps::grad_logits(const at::Tensor& grad) const {
  if (grad.numel() == 0 || !normalized_before())
    return grad.to(type_);
  return normalize_reference_backward(logits_, normalization_, grad).to(type_);
}

}  // namespace seqconv::ops
