#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "seqconv/base/special_ids.h"
#include "seqconv/decode/step_decoder.h"

namespace seqconv {

/// A row's natural log-probabilities: of all words, index = token, or of some.
struct WordScores {
  std::span<const float> log_probs;
  /// The token of each, ascending; empty: all words.
  std::span<const int32_t> words{};

  int32_t token(size_t i) const {
    return words.empty() ? static_cast<int32_t>(i) : words[i];
  }
};

/// For decoders that hold all log-probabilities of a row: its `count` best
/// next tokens into `out` (cleared first), best first, equal scores by
/// ascending token. Costs one pass and no allocation once `out` has grown.
///
/// constraint: what this row may produce, or null.
/// unknown_penalty: subtracted from the log-probability of <unk>.
/// excluded: ascending tokens that may not come, as in StepConstraints.
///
/// <pad>, <s>, banned and excluded tokens never come; NaN counts as minus
/// infinity, and minus infinity is left out. A forced token comes alone, with
/// its true log-probability: neither bans nor the penalty touch it. Error when
/// it has none.
void select_candidates(
    const WordScores& scores,
    const RowConstraint* constraint,
    double unknown_penalty,
    std::span<const int32_t> excluded,
    int64_t count,
    std::vector<Candidate>& out);

/// The same for row `row` of a step. NoProbability where none of the scores is
/// finite, whatever the constraints.
void select_row(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out);

}  // namespace seqconv
