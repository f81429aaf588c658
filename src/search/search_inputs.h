#pragma once

#include <span>
#include <vector>

#include "search/search.h"

namespace seqconv::internal::decode {

/// Error when decoder, inputs and excluded tokens do not fit together.
void check_inputs(
    const StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    std::span<const int32_t> excluded);

}  // namespace seqconv::internal::decode
