#pragma once

#include <algorithm>

#include "runtime/taps.h"

namespace seqconv::internal::runtime {

/// An ordinary convolution: a product with K rows side by side.
class CnnMixer : public Mixer {
 public:
  CnnMixer(const MixerOptions& options, const Weights& weights, const std::string& name)
      : options_(options) {
    const int64_t C = options.dim, K = options.kernel_size;
    const std::vector<float> taps = weights.numbers(name + "conv.weight");
    std::vector<float> matrix(taps.size());  // [C, C, K] -> [C, K, C]
    for (int64_t out = 0; out < C; ++out)
      for (int64_t in = 0; in < C; ++in)
        for (int64_t k = 0; k < K; ++k)
          matrix[static_cast<size_t>((out * K + k) * C + in)] =
              taps[static_cast<size_t>((out * C + in) * K + k)];
    linear_ = {weights.pack(matrix.data(), C, K * C), conv_bias(options, weights, name)};
  }

  void forward(const Sequences& sequences, const LayerRows& rows, Workspace& space) const override {
    const int64_t C = options_.dim, K = options_.kernel_size;
    for (int64_t i = 0; i < sequences.count(); ++i) {
      Workspace::Frame frame(space);
      const int64_t first = sequences.first(i), T = sequences.length(i);
      float* const seen = frame.take(T * K * C);
      for (int64_t t = 0; t < T; ++t)
        for (int64_t k = 0; k < K; ++k) {
          const int64_t from = t + k - options_.padding_left();
          float* const to = seen + (t * K + k) * C;
          if (from >= 0 && from < T)
            std::copy_n(rows.x + (first + from) * C, C, to);
          else
            std::fill_n(to, C, 0.0F);
        }
      finish(T, seen, at(rows, first * C));
    }
  }

  int64_t reach() const override { return options_.kernel_size - 1; }
  std::unique_ptr<MixerSteps> start(Workspace::Frame& kept) const override;

 private:
  class Steps;

  static LayerRows at(const LayerRows& rows, int64_t offset) {
    return {
        rows.x + offset,
        rows.residual == nullptr ? nullptr : rows.residual + offset,
        rows.y + offset};
  }

  /// seen [rows, K, C] -> what comes out.
  void finish(int64_t count, const float* seen, const LayerRows& rows) const {
    linear_.run({.rows = count, .x = seen, .residual = rows.residual, .y = rows.y});
  }

  MixerOptions options_;
  Linear linear_;
};

class CnnMixer::Steps : public MixerSteps {
 public:
  Steps(const CnnMixer& mixer, Workspace::Frame& kept)
      : mixer_(mixer), log_(mixer.options_.dim, mixer.reach(), kept) {}

  void run(const Ancestry& ancestry, const LayerRows& rows, Workspace& space) override {
    Workspace::Frame frame(space);
    const int64_t C = mixer_.options_.dim, K = mixer_.options_.kernel_size;
    const int64_t count = ancestry.steps() * ancestry.rows();
    float* const seen = frame.take(count * K * C);
    const float** const past = frame.take<const float*>(K);
    const auto gather = [&](int64_t step, int64_t row, int64_t number) {
      const int64_t known = Ancestry::seen(step, K - 1);
      float* const to = seen + number * K * C;
      std::fill_n(to, (K - known) * C, 0.0F);
      ancestry.find(log_, step, row, known, past);
      for (int64_t k = 0; k < known; ++k)
        std::copy_n(past[k], C, to + (K - known + k) * C);
    };
    for_step_rows(ancestry, log_, rows.x, C, gather);
    mixer_.finish(count, seen, rows);
  }

 private:
  const CnnMixer& mixer_;
  RowLog log_;
};

inline std::unique_ptr<MixerSteps> CnnMixer::start(Workspace::Frame& kept) const {
  return std::make_unique<Steps>(*this, kept);
}

}  // namespace seqconv::internal::runtime
