#pragma once

#include <string>
#include <string_view>

#include "seqconv/metrics/tokenizers.h"

namespace seqconv::metrics {

/// The line as valid UTF-8 with white space between its tokens. Error for a
/// tokenizer that needs a model.
std::string space_tokens(std::string_view line, BleuTokenizer tokenizer);

}  // namespace seqconv::metrics
