#pragma once

#include <string_view>
#include <vector>

#include "metrics/tokenizers.h"
#include "metrics/word_numbers.h"

namespace seqconv::internal::metrics {

/// The tokens of a line: views of it, or of texts that `texts` keeps, in valid
/// UTF-8. Error for a tokenizer that needs a model.
std::vector<std::string_view> split_tokens(
    std::string_view line, BleuTokenizer tokenizer, WordNumbers& texts);

}  // namespace seqconv::internal::metrics
