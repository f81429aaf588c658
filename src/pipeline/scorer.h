#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/request.h"
#include "pipeline/system.h"

namespace seqconv::internal {

/// Natural log-probability of each target sentence given its source sentence,
/// both as ids without </s>; not a finite number where the model's own are not.
/// `workers`: batches scored at a time, by threads that end with the call.
std::vector<double> score_pairs(
    const TranslationBackend& model,
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets,
    int64_t batch_tokens,
    int64_t workers = 1);

struct ScorerOptions {
  int64_t batch_tokens = 4096;  ///< of the longer side, padding counted
  int64_t workers = 1;
};

/// One result a request. A source longer than the model's max_source_tokens is
/// cut, and a note says so; a target never is. One that fails leaves the others
/// as they are: text that is not UTF-8 or longer than learned positions, no
/// finite probability, no memory for it. Once `stop` is true no batch is begun.
std::vector<ScoreResult> score_requests(
    const TranslationSystem& system,
    const std::vector<ScoreRequest>& requests,
    const ScorerOptions& options,
    const StopQuestion& stop = {});

}  // namespace seqconv::internal
