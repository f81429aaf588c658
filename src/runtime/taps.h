#pragma once

#include <string>
#include <vector>

#include "mixer.h"
#include "seqconv/kernels/decoding.h"

/// What lightconv and dynamicconv share.
namespace seqconv::runtime {

/// The sizes of the convolution over one sequence of `steps` rows.
kernels::ConvShape conv_shape(const MixerOptions& options, int64_t steps);

kernels::TapMaker tap_maker(const MixerOptions& options);

/// The bias after the convolution, or none.
std::vector<float> conv_bias(
    const MixerOptions& options,
    const Weights& weights,
    const std::string& name);

inline const float* or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

/// Calls row(step, r, number in [T', N, D]) for every row of the steps, in
/// order; the rows of a step are in the log before.
template <class Row>
void for_step_rows(
    const Ancestry& ancestry,
    RowLog& log,
    const float* h,
    int64_t width,
    const Row& row) {
  const int64_t N = ancestry.rows();
  for (int64_t t = 0; t < ancestry.steps(); ++t) {
    const int64_t step = ancestry.first() + t;
    std::copy_n(h + t * N * width, N * width, log.add(step, N));
    for (int64_t r = 0; r < N; ++r)
      row(step, r, t * N + r);
  }
}

}  // namespace seqconv::runtime
