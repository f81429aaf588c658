#include "libtorch/ops/kernel_taps.h"

#include <ATen/Functions.h>

namespace seqconv::ops {
namespace {

/// Logits that are zero at padding: what lies there must not become a gradient
/// that is not a number.
at::Tensor real_logits(const at::Tensor& logits, const at::Tensor& padding) {
  if (!padding.defined())
    return logits;
  return logits.masked_fill(padding.unsqueeze(-1).unsqueeze(-1), 0);  // [B, T, H, K]
}

}  // namespace

KernelTaps::KernelTaps(const ConvArguments& args)
    : normalization_(parse_normalization(args.op, args.normalization)),
      type_(args.logits.scalar_type()) {
  normalize(args.logits, [&] {
    return args.lengths ? length_mask(args.x, *args.lengths).squeeze(2).eq(0) : at::Tensor();
  });
}

KernelTaps::KernelTaps(const ShortConvArguments& args, Known known)
    : normalization_(parse_normalization(args.op, args.normalization)),
      known_(known),
      type_(args.logits().scalar_type()) {
  normalize(args.logits(), [&] {
    if (args.lengths)
      return length_mask(args.x, *args.lengths).squeeze(2).eq(0);
    return args.seq_idx ? args.seq_idx->lt(0) : at::Tensor();
  });
}

template <class Padding>
void KernelTaps::normalize(const at::Tensor& logits, const Padding& padding) {
  if (!normalized_before()) {
    taps_ = logits.contiguous();
    return;
  }
  logits_ = logits.dim() == 2 ? logits : real_logits(logits, padding());
  taps_ = normalize_reference(logits_, normalization_).contiguous();
}

at::Tensor KernelTaps::grad_logits(const at::Tensor& grad) const {
  if (grad.numel() == 0 || !normalized_before())
    return grad.to(type_);
  return normalize_reference_backward(logits_, normalization_, grad).to(type_);
}

}  // namespace seqconv::ops
