#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace seqconv {

/// Number of the first real token's position: <pad>'s id + 1
/// (semantics.md 2.1).
inline constexpr int64_t kFirstPosition = 2;

/// Sinusoidal embeddings of the positions first, first + 1, ...: [count, dim]
/// float32, computed in float64. Row p = [sin(p f_i) block | cos(p f_i) block],
/// f_i = 10000^(-i / (dim/2 - 1)); an odd dim ends in a zero. Error
/// "[positions]
/// ..." when dim < 4.
at::Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t dim);

}  // namespace seqconv
