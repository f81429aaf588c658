#pragma once

#include <memory>
#include <utility>

#include "search/step_decoder.h"

namespace seqconv::internal {

/// A decoder around another one, which it owns: all is the other's but for what
/// a class that derives from it overrides.
class WrappedDecoder : public StepDecoder {
 public:
  explicit WrappedDecoder(std::unique_ptr<StepDecoder> inner) : inner_(std::move(inner)) {}

  int64_t sentences() const override { return inner_->sentences(); }
  int64_t vocabulary_size() const override { return inner_->vocabulary_size(); }
  int64_t max_steps() const override { return inner_->max_steps(); }
  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    return inner_->advance(parents, tokens, constraints, count);
  }

 private:
  std::unique_ptr<StepDecoder> inner_;
};

}  // namespace seqconv::internal
