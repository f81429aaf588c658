#pragma once

#include <vector>

#include "pipeline/system.h"
#include "search/search.h"
#include "seqconv/requests.h"

/// Finds what belongs together in a text and its translation, from what the model looked at.
namespace seqconv::internal {

/// Pairs of tokens, </s> of neither side among them: each target token with the source
/// tokens that have at least half of the largest share of its look; with none where </s>
/// has the largest. By source, then target.
std::vector<AlignedTokens> align_tokens(const SourceShares& shares);

/// The look of one translation, ids without </s>, at its source; std::bad_alloc if there is not
/// memory enough.
SourceShares look_at_source(
    const TranslationBackend& backend,
    const std::vector<int32_t>& source,
    const std::vector<int32_t>& target);

/// Holds a sentence whose translations are aligned.
struct SentenceToAlign {
  const std::vector<int32_t>& source;  ///< ids as the model read them, maybe cut
  std::string_view text;               ///< of which they were made; "": only they are known
  const std::vector<Hypothesis>& found;
  Alignments wanted = Alignments::kPairs;
  const Slots& slots = kNoSlots;  ///< of the text
};

/// Puts the source's tokens, </s> the last, and their places into a result. `ids`: as the
/// model read them, maybe cut; text: of which they were made, with its slots; "": only they are
/// known.
void set_source_tokens(
    const TextPipeline& source,
    std::string_view text,
    const std::vector<int32_t>& ids,
    const Slots& slots,
    TranslationResult& result);

/// Puts tokens, their places and what belongs together into a result and its
/// translations, one a hypothesis. The model reads them once more, a few at a time, and one
/// by one if there is not memory enough for that; std::bad_alloc if it is too little for one.
void align(
    const TranslationSystem& system,
    const SentenceToAlign& sentence,
    TranslationResult& result,
    std::vector<Translation>& translations);

}  // namespace seqconv::internal
