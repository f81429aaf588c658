#pragma once

#include "base/enum_names.h"
#include "kernels/conv.h"

/// The names of the normalisations in configurations and messages.
template <>
struct seqconv::internal::EnumNames<seqconv::internal::kernels::Normalization> {
  using Normalization = seqconv::internal::kernels::Normalization;
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Normalization>>(
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
