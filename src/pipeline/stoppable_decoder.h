#pragma once

#include <memory>

#include "seqconv/pipeline/request.h"

namespace seqconv {

/// A decoder that asks before every step, and throws Stopped.
class StoppableDecoder : public StepDecoder {
 public:
  /// stop outlives it.
  StoppableDecoder(
      std::unique_ptr<StepDecoder> decoder,
      const StopQuestion& stop)
      : decoder_(std::move(decoder)), stop_(stop) {}

  int64_t sentences() const override { return decoder_->sentences(); }
  int64_t vocabulary_size() const override {
    return decoder_->vocabulary_size();
  }
  int64_t max_steps() const override { return decoder_->max_steps(); }
  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    if (wants_to_stop(stop_))
      throw Stopped();
    return decoder_->advance(parents, tokens, constraints, count);
  }
  std::span<const float> log_probabilities(int64_t row) const override {
    return decoder_->log_probabilities(row);
  }

 private:
  std::unique_ptr<StepDecoder> decoder_;
  const StopQuestion& stop_;
};

}  // namespace seqconv
