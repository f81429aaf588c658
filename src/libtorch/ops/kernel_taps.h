#pragma once

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/short_conv_ops.h"

namespace seqconv::ops {

/// The taps or logits that a convolution's kernels read: they know the softmax
/// alone or no normalisation, so that others are normalised before, in float32 or
/// float64.
class KernelTaps {
 public:
  /// Says what kernels do with logits.
  enum class Known { kSoftmax, kTaps };

  /// args: checked.
  explicit KernelTaps(const ConvArguments& args);
  explicit KernelTaps(const ShortConvArguments& args, Known known = Known::kSoftmax);

  /// True if get() holds logits of a softmax, false if it holds taps.
  bool softmax() const {
    return normalization_ == Normalization::kSoftmax && known_ == Known::kSoftmax;
  }
  /// [H, K] or [B, T, H, K], contiguous.
  const at::Tensor& get() const { return taps_; }
  /// The gradient of the logits, of their type, from that of get(); [0] as it
  /// is, where none is wanted.
  at::Tensor grad_logits(const at::Tensor& grad) const;

 private:
  /// padding(): [B, T], true at positions whose logits must not matter, or undefined;
  /// asked for only where they could.
  template <class Padding>
  void normalize(const at::Tensor& logits, const Padding& padding);

  bool normalized_before() const { return !softmax() && normalization_ != Normalization::kNone; }

  Normalization normalization_;
  Known known_ = Known::kSoftmax;
  at::ScalarType type_;  ///< of the logits
  at::Tensor logits_;    ///< if they are normalised before
  at::Tensor taps_;
};

}  // namespace seqconv::ops
