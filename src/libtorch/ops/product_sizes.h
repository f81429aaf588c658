#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

namespace seqconv::ops {

/// For every new size of a product in bfloat16 on the CPU oneDNN compiles code,
/// which takes longer than most products, and it keeps but a thousand. Batches
/// have hundreds of sizes: products are padded to one of few.
inline bool wants_few_sizes(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16;
}

/// The least of these sizes that is not below `rows`; at most an eighth above,
/// from 64 rows on.
inline int64_t few_sizes(int64_t rows) {
  if (rows <= 0)
    return rows;
  const auto octave = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  const int64_t step = octave < 64 ? 8 : octave / 8;
  return (rows + step - 1) / step * step;
}

}  // namespace seqconv::ops
