#pragma once

#include <ATen/ops/masked_fill.h>

#include "libtorch/nn/attention.h"

namespace seqconv::internal {

/// x [B, T, C] with zeros at and beyond each row's length, whatever was there.
inline at::Tensor zero_padding(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  if (!lengths)
    return x;
  const at::Tensor padding = length_mask(*lengths, x.size(1)).logical_not().unsqueeze(-1);
  return at::masked_fill(x, padding, 0);
}

}  // namespace seqconv::internal
