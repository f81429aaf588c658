#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "seqconv/base/options.h"

namespace seqconv::ops {

/// How raw kernel weights become taps, over the kernel axis.
enum class Normalization { kNone, kSoftmax };

/// DropConnect: taps (after the normalisation) are dropped with probability p,
/// survivors scaled by 1/(1-p). Which ones is said by a seed (an int64 tensor
/// of one element; counter-based, see base/random.h) or by an explicit mask
/// (1 = kept). Without either, nothing is dropped.
struct DropConnect {
  double p = 0;
  std::optional<at::Tensor> seed;
  std::optional<at::Tensor> mask;
};

}  // namespace seqconv::ops

template <>
struct seqconv::EnumNames<seqconv::ops::Normalization> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::ops::Normalization>>(
          {{"none", seqconv::ops::Normalization::kNone},
           {"softmax", seqconv::ops::Normalization::kSoftmax}});
};
