#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/search.h"

namespace seqconv::internal::testing {

/// Log-probabilities [V] of what follows a history that starts with </s>.
using NextLogProbs = std::function<std::vector<float>(const std::vector<int32_t>&)>;

/// Semantics.md 4 written down as plainly as possible: one sentence, whole
/// hypotheses in lists, every continuation of every one sorted. Shares no code
/// with the search that it judges.
std::vector<Hypothesis> simulate_search(
    const NextLogProbs& next,
    const SearchInput& input,
    const DecodingOptions& options,
    int64_t max_steps,
    const std::vector<int32_t>& excluded = {});

/// Every hypothesis of at most `max_length` tokens before </s>, from tokens 3
/// and up, sorted by normalised score.
std::vector<Hypothesis> enumerate_hypotheses(
    const NextLogProbs& next, int64_t vocabulary, int64_t max_length, double length_penalty);

}  // namespace seqconv::internal::testing
