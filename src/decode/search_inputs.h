#pragma once

#include <span>
#include <vector>

#include "seqconv/decode/search.h"

namespace seqconv::decode {

/// Error when decoder, inputs and excluded tokens do not fit together.
void check_inputs(
    const StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    std::span<const int32_t> excluded);

}  // namespace seqconv::decode
