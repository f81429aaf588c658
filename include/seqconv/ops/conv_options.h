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
  std::optional<at::Tensor> seed;
  std::optional<at::Tensor> mask;
};

/// Arguments of lightconv_step and dynamicconv_step besides their tensors.
struct ConvStepOptions {
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  std::optional<at::Tensor> bias;  ///< [C]
};

}  // namespace seqconv::ops
