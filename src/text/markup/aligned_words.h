#pragma once

#include <string_view>
#include <vector>

#include "text/markup/place_elements.h"

namespace seqconv::internal {

/// Words, and characters that are part of none, in their order, as bytes of the text; white space
/// belongs to none of them. Each letter of a script without blanks is one.
std::vector<ByteRange> word_units(std::string_view text);

/// The units of a text and of its translation that belong together, as their tokens do: each pair
/// once, by target, then source.
std::vector<AlignedRanges> aligned_words(
    std::string_view source, const RunTranslation& translation);

}  // namespace seqconv::internal
