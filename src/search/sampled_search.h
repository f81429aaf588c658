#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/sample.h"
#include "search/search.h"

namespace seqconv::internal {

/// Says how the translations of one sentence are drawn.
struct SampledInput {
  SearchInput sentence;
  uint64_t seed = 1;  ///< with which all its draws are made
};

/// The options of draws, for which the beam counts for nothing: one that n_best
/// fits into.
DecodingOptions without_beam(DecodingOptions options);

/// UsageError where `given` asks for what is a search's alone, beside draws.
void refuse_beside_draws(const SearchOptions& given, const OptionNames& names);

/// UsageError where `given`, keys of SamplingOptions or "seed", asks for what
/// is that of draws alone, without `draw`, what asks for them.
void refuse_without_draws(
    const std::vector<std::string>& given, const OptionNames& names, const std::string& draw);

/// Draws options.n_best translations of each sentence token by token, instead
/// of searching for the best (for back-translation: Edunov et al. 2018). The
/// other options hold as in search(), but that the beam counts for nothing.
/// Best first, equal ones in the order in which they were drawn. A sentence's
/// result is a function of its input and seed, whatever else is in the batch.
std::vector<std::vector<Hypothesis>> sampled_search(
    StepDecoder& decoder,
    const std::vector<SampledInput>& inputs,
    const DecodingOptions& options,
    const SamplingOptions& sampling,
    std::span<const int32_t> excluded = {});
/// The same, sentence by sentence as all its draws have ended.
void sampled_search(
    StepDecoder& decoder,
    const std::vector<SampledInput>& inputs,
    const DecodingOptions& options,
    const SamplingOptions& sampling,
    std::span<const int32_t> excluded,
    const FoundHypotheses& found,
    const SharedTokens& shared = {});

}  // namespace seqconv::internal
