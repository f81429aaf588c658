#pragma once

#include <string_view>
#include <vector>

#include "pipeline/request.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// The ids of a request's text, `what` ("a line"); Error for one that is not
/// UTF-8.
std::vector<int32_t> encode_text(const TextPipeline& text, std::string_view line, const char* what);

}  // namespace seqconv::internal
