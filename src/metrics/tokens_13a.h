#pragma once

#include <string_view>
#include <vector>

#include "word_numbers.h"

namespace seqconv::metrics {

/// The tokens that mteval-v13a, as sacreBLEU 2 has it, makes of a line of valid
/// UTF-8: views of it, or of texts that `texts` keeps.
std::vector<std::string_view> split_13a(
    std::string_view line,
    WordNumbers& texts);

}  // namespace seqconv::metrics
