#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "search/step_decoder.h"

namespace seqconv::internal {

/// The `count` best next tokens of each row of a step into `out`, chosen where
/// the scores lie: the very ones that select_row chooses, in its order. Reads
/// [N, count] numbers of 8 bytes from a device, one more a row where a token is
/// forced, and all scores of rows that have no candidate.
///
/// scores: natural log-probabilities [N, V], float32, V > </s>.
/// count: at least 1.
///
/// NoProbability where a row has no finite score; Error for a forced token
/// outside the vocabulary.
void select_rows(
    const at::Tensor& scores,
    const StepConstraints& constraints,
    int64_t count,
    std::vector<std::vector<Candidate>>& out);

}  // namespace seqconv::internal
