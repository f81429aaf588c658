#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "seqconv/ops/normalization.h"

namespace seqconv::ops {

/// DropConnect: taps (after the normalisation) are dropped with probability p,
/// survivors scaled by 1/(1-p). Which ones is said by a seed (an int64 tensor
/// of one element; counter-based: the same on every device) or by an explicit
/// mask (1 = kept). Without either, nothing is dropped.
struct DropConnect {
  double p = 0;
  std::optional<at::Tensor> seed{};
  std::optional<at::Tensor> mask{};
};

/// Arguments of lightconv and dynamicconv besides their tensors.
struct ConvOptions {
  int64_t padding_left = 0;  ///< K-1: causal; K/2: centred; 0 .. K-1
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;       ///< taps inside the sequence sum to 1
  DropConnect drop{};                   ///< mask as weight [H, K] or logits [B, T, H, K]
  std::optional<at::Tensor> bias{};     ///< [C]
  std::optional<at::Tensor> lengths{};  ///< [B], int64 or int32, right padding
};

/// Arguments of lightconv_step and dynamicconv_step besides their tensors.
struct ConvStepOptions {
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  std::optional<at::Tensor> bias{};  ///< [C]
};

}  // namespace seqconv::ops
