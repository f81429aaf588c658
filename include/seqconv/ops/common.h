#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "seqconv/base/enum_names.h"
#include "seqconv/kernels/conv.h"

namespace seqconv::ops {

using kernels::Normalization;

/// DropConnect: taps (after the normalisation) are dropped with probability p,
/// survivors scaled by 1/(1-p). Which ones is said by a seed (an int64 tensor
/// of one element; counter-based, see base/random.h) or by an explicit mask
/// (1 = kept). Without either, nothing is dropped.
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

template <>
struct seqconv::EnumNames<seqconv::kernels::Normalization> {
  using Normalization = seqconv::kernels::Normalization;
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, Normalization>>(
          {{"none", Normalization::kNone},
           {"softmax", Normalization::kSoftmax},
           {"sigmoid", Normalization::kSigmoid},
           {"tanh", Normalization::kTanh},
           {"square", Normalization::kSquare},
           {"abs", Normalization::kAbs},
           {"l1", Normalization::kL1},
           {"l2", Normalization::kL2},
           {"abs_l1", Normalization::kAbsL1},
           {"abs_l2", Normalization::kAbsL2}});
};
