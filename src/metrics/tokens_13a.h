#pragma once

#include <string_view>
#include <vector>

#include "metrics/word_numbers.h"

namespace seqconv::internal::metrics {

/// The tokens that mteval-v13a, as sacreBLEU 2 has it, makes of a line of valid
/// UTF-8: views of it, or of texts that `texts` keeps.
std::vector<std::string_view> split_13a(std::string_view line, WordNumbers& texts);

}  // namespace seqconv::internal::metrics
