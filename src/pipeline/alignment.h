#pragma once

#include <string_view>
#include <vector>

#include "search/backend.h"
#include "seqconv/runtime.h"
#include "text/text_pipeline.h"

/// Finds what belongs together in a text and its translation, from what the model looked at.
namespace seqconv::internal {

/// Puts the source's tokens, </s> the last, and their places into a result. `ids`: as the
/// model read them, maybe cut; `text`: what they were made of, or "" where only they are
/// known.
void set_source_tokens(
    const TextPipeline& source,
    std::string_view text,
    const std::vector<int32_t>& ids,
    TranslationResult& result);

/// Pairs of tokens, </s> of neither side among them: each target token with the source
/// tokens that have at least half of the largest share of its look; with none where </s>
/// has the largest. By source, then target.
std::vector<AlignedTokens> align_tokens(const SourceShares& shares);

/// Puts the places of a translation's tokens and what they belong to into it; the shares
/// too where `wanted` says so.
void set_alignment(
    const TextPipeline& target, SourceShares shares, Alignments wanted, Translation& translation);

}  // namespace seqconv::internal
