#pragma once

#include <memory>

#include "pipeline/request.h"
#include "search/wrapped_decoder.h"

namespace seqconv::internal {

/// A decoder that asks before every step, and throws Stopped.
class StoppableDecoder : public WrappedDecoder {
 public:
  /// stop outlives it.
  StoppableDecoder(std::unique_ptr<StepDecoder> decoder, const StopQuestion& stop)
      : WrappedDecoder(std::move(decoder)), stop_(stop) {}

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    if (wants_to_stop(stop_))
      throw Stopped();
    return WrappedDecoder::advance(parents, tokens, constraints, count);
  }

 private:
  const StopQuestion& stop_;
};

}  // namespace seqconv::internal
