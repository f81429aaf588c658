#pragma once

#include <ATen/core/Tensor.h>

namespace seqconv::ops {

/// seed [] int64 -> booleans of `size` on its device: which elements a dropout
/// of probability p keeps, the first of them being number `first`.
using KeptElementsSignature =
    at::Tensor(const at::Tensor& seed, at::IntArrayRef size, int64_t first, double p);

inline constexpr const char* kKeptElements = "kept_elements";

}  // namespace seqconv::ops
