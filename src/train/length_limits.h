#pragma once

#include "search/search.h"
#include "text/corpus/samples.h"

namespace seqconv::internal {

/// Sets max_length_a and max_length_b so that they fit `samples`: the limit of a source of S
/// tokens is a quarter above f (S + 10), where all targets but a thousandth have at most
/// f (S + 10) tokens; or, where that is clearly less in the mean, as for summaries, a quarter above
/// the longest target but a thousandth, whatever the source. A translation that goes round in
/// circles ends there, after about as many tokens as the longest right ones have. Nothing changes
/// without samples.
void fit_length_limits(const SampleSource& samples, DecodingOptions& decoding);

}  // namespace seqconv::internal
