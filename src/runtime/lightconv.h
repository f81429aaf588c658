#pragma once

#include "kernels/conv.h"
#include "runtime/taps.h"

namespace seqconv::internal::runtime {

/// LightConv (Wu et al. 2019, equation 3): its taps are made when it is loaded.
class LightConv : public TapConvolution {
 public:
  LightConv(const MixerOptions& options, const Weights& weights, const std::string& name)
      : TapConvolution(options, weights, name),
        logits_(weights.numbers(name + "conv.weight")),
        kernels_(logits_),
        taps_(static_cast<size_t>(maker().size())) {
    maker().make(logits_.data(), options.kernel_size, taps_.data());
    taps_by_channel_ = by_channel(taps_.data());
    kernels::normalize_taps(
        options.normalization, kernels_.data(), options.heads, options.kernel_size);
  }

  void forward(
      const Sequences& sequences,
      const float* h,
      const float* /*query*/,
      float* y,
      Workspace& /*space*/) const override {
    const kernels::Execution run{.parallel_for = threads()};
    for (int64_t i = 0; i < sequences.count(); ++i) {
      auto one = sequence(sequences, i, h, y);
      one.logits = kernels_.data();
      kernels::lightconv_forward<float>(one, run);
    }
  }

  PositionWeights probe(
      int64_t /*steps*/,
      const float* /*h*/,
      const float* /*query*/,
      Workspace& /*space*/) const override {
    return taps_of(WeightForm::kFixedTaps, 1, logits_.data());
  }

  void step(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      const float* /*query*/,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    float* const edge = frame.take(maker().size());
    int64_t made = 0;  // inputs that `edge` is of
    const auto row = [&](int64_t /*number*/, const kernels::SeenRows& x, float* out) {
      if (!maker().renormalize_edges || x.count == maker().kernel_size)
        return taps_by_channel_.empty() ? weigh(taps_.data(), x, out)
                                        : weigh_by_channel(taps_by_channel_.data(), x, out);
      if (made != x.count)
        maker().make(logits_.data(), x.count, edge);
      made = x.count;
      weigh(edge, x, out);
    };
    step_rows(ancestry, log, h, y, space, row);
  }

 private:
  std::vector<float> logits_;           // [H, K]
  std::vector<float> kernels_;          // the same as the operator takes them
  std::vector<float> taps_;             // of a row that sees K inputs
  std::vector<float> taps_by_channel_;  // the same [K, D], of narrow heads
};

}  // namespace seqconv::internal::runtime
