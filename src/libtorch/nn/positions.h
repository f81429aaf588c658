#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>

#include "base/special_ids.h"

namespace seqconv::internal {

/// Sinusoidal embeddings of the positions first, first + 1, ...: [count, dim]
/// float32, computed in float64. Row p = [sin(p f_i) block | cos(p f_i) block],
/// f_i = 10000^(-i / (dim/2 - 1)); an odd dim ends in a zero. Error
/// "[positions]
/// ..." when dim < 4.
at::Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t dim);

/// The rows of a text's tokens, made when they are first asked for and kept, as
/// far as memory does not grow with the text. Safe to use from several threads:
/// rows that were given out are never changed.
class SinusoidalTable {
 public:
  explicit SinusoidalTable(int64_t dim);

  /// The rows of `count` tokens that come after `past` ones: [count, dim], on
  /// `device`, though they are computed on the host.
  at::Tensor rows(int64_t past, int64_t count, at::Device device = at::kCPU) const;

 private:
  struct Rows {
    int64_t past = 0;
    at::Tensor rows;

    bool hold(int64_t past, int64_t count, at::Device device) const;
  };

  int64_t dim_;
  mutable std::mutex mutex_;  // of the two below
  mutable Rows first_;        // from the first token on, as many as were needed
  mutable Rows distant_;      // some of a long text
};

}  // namespace seqconv::internal
