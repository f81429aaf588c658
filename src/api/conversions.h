#pragma once

#include "seqconv/api/runtime.h"
#include "seqconv/pipeline/translator.h"

/// Between the types of this library and those of the layers below.
namespace seqconv::api {

seqconv::SamplingOptions to_sampling(const SamplingSettings& settings);

/// defaults: the model's own.
seqconv::TranslationRequest to_request(
    const TranslationRequest& request,
    const SearchOptions& defaults);

TranslationResult to_result(const seqconv::TranslationResult& result);

}  // namespace seqconv::api
