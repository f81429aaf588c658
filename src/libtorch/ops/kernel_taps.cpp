#include "libtorch/ops/kernel_taps.h"

#include <ATen/Functions.h>

namespace seqconv::ops {
namespace {

/// Logits that are zero at padding: what lies there must not become a gradient
/// that is not a number.
at::Tensor real_logits(const at::Tensor& logits, const at::Tensor& padding) {
  if (logits.dim() == 2 || !padding.defined())
    return logits;
  return logits.masked_fill(padding.unsqueeze(-1).unsqueeze(-1), 0);  // [B, T, H, K]
}

at::Tensor padding_of(const ConvArguments& args) {
  return args.lengths ? length_mask(args.x, *args.lengths).squeeze(2).eq(0) : at::Tensor();
}

}  // namespace

KernelTaps::KernelTaps(const ConvArguments& args)
    : KernelTaps(args.op, args.logits, args.normalization, padding_of(args)) {}

KernelTaps::KernelTaps(
    const char* op,
    const at::Tensor& logits,
    std::string_view normalization,
    const at::Tensor& padding,
    Known known)
    : normalization_(parse_normalization(op, normalization)),
      known_(known),
      type_(logits.scalar_type()) {
  if (normalized_before()) {
    logits_ = real_logits(logits, padding);
    taps_ = normalize_reference(logits_, normalization_).contiguous();
  } else {
    taps_ = logits.contiguous();
  }
}

at::Tensor KernelTaps::grad_logits(const at::Tensor& grad) const {
  if (grad.numel() == 0 || !normalized_before())
    return grad.to(type_);
  return normalize_reference_backward(logits_, normalization_, grad).to(type_);
}

}  // namespace seqconv::ops
