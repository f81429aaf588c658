#pragma once

#include "base/enum_names.h"
#include "kernels/conv.h"

/// The names of a short convolution's activations in messages and arguments.
template <>
struct seqconv::internal::EnumNames<seqconv::internal::kernels::ConvActivation> {
  using ConvActivation = seqconv::internal::kernels::ConvActivation;
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ConvActivation>>(
      {{"none", ConvActivation::kNone}, {"silu", ConvActivation::kSilu}});
};
