#pragma once

#include "kernels/conv.h"
#include "runtime/taps.h"

namespace seqconv::internal::runtime {

/// DynamicConv (Wu et al. 2019, equation 4).
class DynamicConv : public TapConvolution {
 public:
  DynamicConv(const MixerOptions& options, const Weights& weights, const std::string& name)
      : TapConvolution(options, weights, name),
        predict_(weights.matrix(name + "conv.weight_linear")) {
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
    float* const logits = predicted(sequences.rows(), query, frame);
    kernels::normalize_taps(
        maker().normalization, logits, sequences.rows() * maker().heads, maker().kernel_size);
    const kernels::Execution run{.parallel_for = threads()};
    for (int64_t i = 0; i < sequences.count(); ++i) {
      auto one = sequence(sequences, i, h, y);
      one.logits = logits + sequences.first(i) * predict_.weight.outputs();
      kernels::dynamicconv_forward<float, float>(one, run);
    }
  }

  PositionWeights probe(
      int64_t steps, const float* /*h*/, const float* query, Workspace& space) const override {
    Workspace::Frame frame(space);
    PositionWeights taps = taps_of(WeightForm::kTaps, steps, predicted(steps, query, frame));
    renormalize(taps);
    return taps;
  }

  void step(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      const float* query,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const float* const logits = predicted(ancestry.steps() * ancestry.rows(), query, frame);
    float* const made = frame.take(maker().size());
    const auto row = [&](int64_t number, const kernels::SeenRows& x, float* out) {
      maker().make(logits + number * predict_.weight.outputs(), x.count, made);
      weigh(made, x, out);
    };
    step_rows(ancestry, log, h, y, space, row);
  }

 private:
  /// Logits [rows, H, K].
  float* predicted(int64_t rows, const float* query, Workspace::Frame& frame) const {
    float* const logits = frame.take(rows * predict_.weight.outputs());
    predict_.run({.rows = rows, .x = query, .y = logits});
    return logits;
  }

  Linear predict_;
};

}  // namespace seqconv::internal::runtime
