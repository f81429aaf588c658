#pragma once

#include "seqconv/kernels/lightconv.h"
#include "taps.h"

namespace seqconv::runtime {

/// LightConv (Wu et al. 2019, equation 3): its taps are made when it is loaded.
class LightConvolution : public Convolution {
 public:
  LightConvolution(
      const MixerOptions& options,
      const Weights& weights,
      const std::string& name)
      : options_(options),
        maker_(tap_maker(options)),
        logits_(weights.numbers(name + "conv.weight")),
        bias_(conv_bias(options, weights, name)),
        taps_(static_cast<size_t>(maker_.size())) {
    maker_.make(logits_.data(), options.kernel_size, taps_.data());
  }

  void forward(
      const Sequences& sequences,
      const float* h,
      const float* /*query*/,
      float* y,
      Workspace& /*space*/) const override {
    const kernels::Execution run{.parallel_for = one_thread()};
    for (int64_t i = 0; i < sequences.count(); ++i) {
      const int64_t at = sequences.first(i) * options_.conv_dim;
      kernels::lightconv_forward<float>(
          {.shape = conv_shape(options_, sequences.length(i)),
           .normalization = options_.normalization,
           .renormalize_edges = options_.renormalize_edges,
           .x = h + at,
           .logits = logits_.data(),
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
      const float* /*query*/,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t K = options_.kernel_size, D = options_.conv_dim;
    const float** const rows = frame.take<const float*>(K);
    float* const edge = frame.take(maker_.size());
    const auto run = [&](int64_t step, int64_t row, int64_t number) {
      const int64_t count = Ancestry::seen(step, K - 1);
      const float* taps = taps_.data();
      if (options_.renormalize_edges && count < K) {
        maker_.make(logits_.data(), count, edge);
        taps = edge;
      }
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
  MixerOptions options_;
  kernels::TapMaker maker_;
  std::vector<float> logits_;  // [H, K]
  std::vector<float> bias_;    // [D] or none
  std::vector<float> taps_;    // of a row that sees K inputs
};

}  // namespace seqconv::runtime
