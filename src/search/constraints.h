#pragma once

#include <cstdint>
#include <vector>

#include "search/repeated_ngrams.h"
#include "search/search.h"
#include "search/step_decoder.h"
#include "search/terms.h"

namespace seqconv::internal::decode {

/// Bounds of the hypotheses of one sentence. Steps count from 0: step s
/// produces token s of a hypothesis.
struct Limits {
  int64_t max_length = 0;  ///< tokens before </s>, which is forced then
  int64_t min_length = 0;  ///< </s> is banned in steps below this
  int64_t no_repeat_ngram = 0;
  std::vector<int32_t> prefix;  ///< forced; up to its </s> if it holds one
  Terms terms;                  ///< </s> is banned until they are met
};

/// The limits of one sentence.
Limits make_limits(const DecodingOptions& options, const SearchInput& input, int64_t max_steps);

/// Tells whether `step` can be constrained at all, whatever the hypothesis.
bool constrains(const Limits& limits, int64_t step);

/// Says what may come in `step`, behind token number `last` of `ngrams`, in a hypothesis that has
/// come so far with its terms. In this order: </s> at the maximum length, the prefix, the bans;
/// tokens of terms are asked for in spite of them.
RowConstraint row_constraint(
    const Limits& limits,
    int64_t step,
    const RepeatedNgrams& ngrams,
    int32_t last,
    const TermProgress& terms = {});

}  // namespace seqconv::internal::decode
