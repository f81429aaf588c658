#pragma once

#include <span>
#include <vector>

#include "search/step_decoder.h"

namespace seqconv::internal::testing {

/// What a step says of each of its rows.
struct StepRows {
  std::vector<std::vector<Candidate>> best;
  std::vector<std::vector<float>> log_probabilities;  ///< [N][V]
};

/// A step that gives out all log-probabilities.
inline StepRows advance_with_rows(
    StepDecoder& decoder,
    std::span<const int32_t> parents,
    std::span<const int32_t> tokens,
    StepConstraints constraints,
    int64_t count) {
  StepRows rows;
  constraints.each_row = [&](const StepRow& row) {
    rows.log_probabilities.emplace_back(row.log_probabilities.begin(), row.log_probabilities.end());
  };
  rows.best = decoder.advance(parents, tokens, constraints, count);
  return rows;
}

}  // namespace seqconv::internal::testing
