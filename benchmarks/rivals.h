#pragma once

#include <ATen/core/Tensor.h>

/// What people would use instead: the formulations in plain tensor algebra.
namespace seqconv::bench {

/// DynamicConv by windows of all K taps, centred. x [B, T, C], logits
/// [B, T, H, K] -> [B, T, C].
at::Tensor dynamic_unfold(const at::Tensor& x, const at::Tensor& logits);

/// DynamicConv by a band matrix [T, T] for each row and head, centred.
at::Tensor dynamic_band(const at::Tensor& x, const at::Tensor& logits);

/// TaLK by a prefix sum over the whole sequence. x [T, B, C], left and right
/// [T, B, H] in (0, 1) -> [T, B, C].
at::Tensor talk_cumsum(
    const at::Tensor& x,
    const at::Tensor& left,
    const at::Tensor& right,
    int64_t max_left,
    int64_t max_right);

}  // namespace seqconv::bench
