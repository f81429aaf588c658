#pragma once

#include <memory>
#include <vector>

#include "model.h"
#include "seqconv/decode/step_decoder.h"

namespace seqconv::runtime {

/// A decoder of the translations of sources, at least one, by models of one
/// target vocabulary that vote: the logarithm of their mean probability.
std::unique_ptr<StepDecoder> make_step_decoder(
    std::vector<std::shared_ptr<const TranslationModel>> models,
    const std::vector<std::vector<int32_t>>& sources);

}  // namespace seqconv::runtime
