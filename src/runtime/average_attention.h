#pragma once

#include <optional>

#include "kernels/cumulative_average.h"
#include "kernels/decoding.h"
#include "runtime/feed_forward.h"
#include "runtime/mixer.h"

namespace seqconv::internal::runtime {

/// Average attention (Zhang et al. 2018).
class AverageAttentionMixer : public Mixer {
 public:
  AverageAttentionMixer(
      const MixerOptions& options, const Weights& weights, const std::string& name)
      : dim_(options.dim), gate_(weights.linear(name + "attention.gate")) {
    if (options.average_hidden > 0)
      ffn_.emplace(weights, name + "attention.ffn.", kernels::Activation::kRelu);
  }

  void forward(const Sequences& sequences, const LayerRows& rows, Workspace& space) const override {
    Workspace::Frame frame(space);
    float* const average = frame.take(sequences.rows() * dim_);
    for (int64_t i = 0; i < sequences.count(); ++i) {
      const int64_t at = sequences.first(i) * dim_;
      kernels::cumulative_average<float>(
          {.shape = {.batch = 1, .steps = sequences.length(i), .channels = dim_},
           .x = rows.x + at,
           .y = average + at},
          threads());
    }
    finish(sequences.rows(), average, rows, space);
  }

  int64_t reach() const override { return 1; }
  std::unique_ptr<MixerSteps> start(Workspace::Frame& kept) const override;

 private:
  class Steps;

  /// average [rows, C] -> what comes out.
  void finish(int64_t count, const float* average, const LayerRows& rows, Workspace& space) const {
    Workspace::Frame frame(space);
    float* const both = frame.take(count * 2 * dim_);  // x, g side by side
    float* const gates = frame.take(count * 2 * dim_);
    if (ffn_)
      ffn_->run({.rows = count, .x = average, .y = both + dim_, .y_stride = 2 * dim_}, space);
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(rows.x + r * dim_, dim_, both + r * 2 * dim_);
      if (!ffn_)
        std::copy_n(average + r * dim_, dim_, both + (r * 2 + 1) * dim_);
    }
    gate_.run({.rows = count, .x = both, .y = gates});
    for (int64_t r = 0; r < count; ++r) {
      float* const x = both + r * 2 * dim_;
      kernels::average_gate({.x = x, .average = x + dim_, .gates = gates + r * 2 * dim_}, dim_, x);
      for (int64_t c = 0; c < dim_; ++c)
        rows.y[r * dim_ + c] = rows.residual == nullptr ? x[c] : rows.residual[r * dim_ + c] + x[c];
    }
  }

  int64_t dim_;
  std::optional<FeedForward> ffn_;
  Linear gate_;
};

class AverageAttentionMixer::Steps : public MixerSteps {
 public:
  Steps(const AverageAttentionMixer& mixer, Workspace::Frame& kept) : mixer_(mixer), kept_(kept) {}

  void run(const Ancestry& ancestry, const LayerRows& rows, Workspace& space) override {
    Workspace::Frame frame(space);
    const int64_t N = ancestry.rows(), C = mixer_.dim_;
    const int64_t count = ancestry.steps() * N;
    float* const average = frame.take(count * C);
    follow(ancestry);
    for (int64_t t = 0; t < ancestry.steps(); ++t)
      kernels::cumulative_average_step<float>(
          {.shape = {.batch = N, .steps = 1, .channels = C},
           .position = ancestry.first() + t,
           .x = rows.x + t * N * C,
           .sums = sums_.data(),
           .y = average + t * N * C},
          threads());
    mixer_.finish(count, average, rows, space);
  }

 private:
  /// Sums go along with the rows that continue them.
  void follow(const Ancestry& ancestry) {
    const int64_t N = ancestry.rows(), C = mixer_.dim_;
    double* const next = next_.hold(N * C, kept_);
    std::fill_n(next, N * C, 0.0);
    if (const int64_t first = ancestry.first(); first > 0)
      for (int64_t r = 0; r < N; ++r)
        std::copy_n(sums_.data() + ancestry.row_at(first - 1, r) * C, C, next + r * C);
    std::swap(sums_, next_);
  }

  const AverageAttentionMixer& mixer_;
  Workspace::Frame& kept_;
  Grown<double> sums_;  // [N, C]: of all inputs
  Grown<double> next_;
};

inline std::unique_ptr<MixerSteps> AverageAttentionMixer::start(Workspace::Frame& kept) const {
  return std::make_unique<Steps>(*this, kept);
}

}  // namespace seqconv::internal::runtime
