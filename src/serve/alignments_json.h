#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/markup/place_elements.h"

namespace seqconv::internal {

/// Words that belong together, as [{"source": [begin, end], "target": [begin, end]}] in code
/// points of the two texts, whose bytes they are given by.
Json alignments_json(
    const std::vector<AlignedRanges>& words, std::string_view source, std::string_view target);

}  // namespace seqconv::internal
