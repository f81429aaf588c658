#pragma once

#include "seqconv/kernels/dynamicconv.h"
#include "taps.h"

namespace seqconv::runtime {

/// DynamicConv (Wu et al. 2019, equation 4).
class DynamicConvolution : public Convolution {
 public:
  DynamicConvolution(
      const MixerOptions& options,
      const Weights& weights,
      const std::string& name)
      : options_(options),
        maker_(tap_maker(options)),
        predict_(weights.matrix(name + "conv.weight_linear")),
        bias_(conv_bias(options, weights, name)) {
    if (options.filter_bias)
      predict_.bias = weights.numbers(name + "conv.weight_linear_bias");
  }

  void forward(
      const Sequences& sequences,
      const float* h,
      const float* query,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const float* const logits = predicted(sequences.rows(), query, frame);
    const kernels::Execution run{.parallel_for = one_thread()};
    for (int64_t i = 0; i < sequences.count(); ++i) {
      const int64_t at = sequences.first(i) * options_.conv_dim;
      kernels::dynamicconv_forward<float, float>(
          {.shape = conv_shape(options_, sequences.length(i)),
           .normalization = options_.normalization,
           .renormalize_edges = options_.renormalize_edges,
           .x = h + at,
           .logits = logits + sequences.first(i) * row_logits(),
           .bias = or_null(bias_),
           .y = y + at},
          run);
    }
  }

  int64_t reach() const override { return options_.kernel_size - 1; }

  void step(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      const float* query,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t K = options_.kernel_size, D = options_.conv_dim;
    const float* const logits =
        predicted(ancestry.steps() * ancestry.rows(), query, frame);
    const float** const rows = frame.take<const float*>(K);
    float* const taps = frame.take(maker_.size());
    const auto run = [&](int64_t step, int64_t row, int64_t number) {
      const int64_t count = Ancestry::seen(step, K - 1);
      maker_.make(logits + number * row_logits(), count, taps);
      ancestry.find(log, step, row, count, rows);
      kernels::weighted_rows(
          {.heads = options_.heads,
           .channels = D,
           .taps = taps + K - count,
           .tap_stride = maker_.stride(),
           .bias = or_null(bias_)},
          {rows, count},
          y + number * D);
    };
    for_step_rows(ancestry, log, h, D, run);
  }

 private:
  int64_t row_logits() const { return options_.heads * options_.kernel_size; }

  /// Logits [rows, H, K].
  float* predicted(int64_t rows, const float* query, Workspace::Frame& frame)
      const {
    float* const logits = frame.take(rows * row_logits());
    predict_.run({.rows = rows, .x = query, .y = logits});
    return logits;
  }

  MixerOptions options_;
  kernels::TapMaker maker_;
  Linear predict_;
  std::vector<float> bias_;  // [D] or none
};

}  // namespace seqconv::runtime
