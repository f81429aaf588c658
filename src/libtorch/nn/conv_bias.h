#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace seqconv::internal {

/// A parameter that may not exist, as the operators take it.
inline std::optional<at::Tensor> optional_bias(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

}  // namespace seqconv::internal
