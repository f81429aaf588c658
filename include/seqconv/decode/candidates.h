#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "seqconv/base/special_ids.h"
#include "seqconv/decode/step_decoder.h"

namespace seqconv {

/// For decoders that hold all log-probabilities of a row: its `count` best
/// next tokens into `out` (cleared first), best first, equal scores by
/// ascending token. Costs one pass and no allocation once `out` has grown.
///
/// log_probs: [V] natural log-probabilities, index = token.
/// constraint: what this row may produce, or null.
/// unknown_penalty: subtracted from the log-probability of <unk>.
/// excluded: ascending tokens that may not come, as in StepConstraints.
///
/// <pad>, <s>, banned and excluded tokens never come; NaN counts as minus
/// infinity, and minus infinity is left out. A forced token comes alone, with
/// its true log-probability: neither bans nor the penalty touch it. Error when
/// the forced token is not below V.
void select_candidates(
    std::span<const float> log_probs,
    const RowConstraint* constraint,
    double unknown_penalty,
    std::span<const int32_t> excluded,
    int64_t count,
    std::vector<Candidate>& out);

/// The same for row `row` of a step. NoProbability where none of log_probs is
/// finite, whatever the constraints.
void select_row(
    std::span<const float> log_probs,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out);

}  // namespace seqconv
