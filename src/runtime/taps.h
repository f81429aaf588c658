#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/decoding.h"
#include "runtime/mixer.h"

/// Parts that the convolutions share.
namespace seqconv::internal::runtime {

/// The bias after the convolution, or none.
std::vector<float> conv_bias(
    const MixerOptions& options, const Weights& weights, const std::string& name);

/// Calls row(step, r, number in [T', N, D]) for every row of the steps, in
/// order; the rows of a step are in the log before.
template <class Row>
void for_step_rows(
    const Ancestry& ancestry, RowLog& log, const float* h, int64_t width, const Row& row) {
  const int64_t N = ancestry.rows();
  for (int64_t t = 0; t < ancestry.steps(); ++t) {
    const int64_t step = ancestry.first() + t;
    std::copy_n(h + t * N * width, N * width, log.add(step, N));
    for (int64_t r = 0; r < N; ++r)
      row(step, r, t * N + r);
  }
}

/// A convolution with K taps a head, of whatever logits.
class TapConvolution : public Convolution {
 public:
  TapConvolution(const MixerOptions& options, const Weights& weights, const std::string& name);

  int64_t reach() const override { return options_.kernel_size - 1; }

 protected:
  const kernels::TapMaker& maker() const { return maker_; }

  /// The kernels of `rows` rows of logits [rows, H, K], as they are where the
  /// whole kernel lies within the sequence.
  PositionWeights taps_of(WeightForm form, int64_t rows, const float* logits) const;
  /// Takes the taps outside of a sequence away where this is done.
  void renormalize(PositionWeights& taps) const;

  /// The convolution of sequence `i`, but for its logits.
  kernels::ConvForward<float, float> sequence(
      const Sequences& sequences, int64_t i, const float* h, float* y) const;

  /// Rows of the next steps; weigh(number, inputs, y) makes the row with that
  /// number of the inputs that it sees.
  template <class Weigh>
  void step_rows(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      float* y,
      Workspace& space,
      const Weigh& weigh) const {
    Workspace::Frame frame(space);
    const int64_t K = options_.kernel_size, D = options_.conv_dim;
    const float** const rows = frame.take<const float*>(K);
    const auto run = [&](int64_t step, int64_t row, int64_t number) {
      const int64_t count = Ancestry::seen(step, K - 1);
      ancestry.find(log, step, row, count, rows);
      weigh(number, kernels::SeenRows{rows, count}, y + number * D);
    };
    for_step_rows(ancestry, log, h, D, run);
  }

  /// A row of the inputs that it sees, by taps as maker() makes them.
  void weigh(const float* taps, const kernels::SeenRows& x, float* y) const {
    kernels::weighted_rows(
        {.heads = options_.heads,
         .channels = options_.conv_dim,
         .taps = taps + options_.kernel_size - x.count,
         .tap_stride = maker_.stride(),
         .bias = bias()},
        x,
        y);
  }
  /// Weighs a row so by taps [K, D].
  void weigh_by_channel(const float* taps, const kernels::SeenRows& x, float* y) const {
    kernels::weighted_channels(
        {.channels = options_.conv_dim,
         .taps = taps + (options_.kernel_size - x.count) * options_.conv_dim,
         .bias = bias()},
        x,
        y);
  }
  /// Made taps as [K, D], where heads are so narrow that this is quicker; else
  /// nothing.
  std::vector<float> by_channel(const float* taps) const;

 private:
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  MixerOptions options_;
  kernels::TapMaker maker_;
  std::vector<float> bias_;  // [D] or none
};

}  // namespace seqconv::internal::runtime
