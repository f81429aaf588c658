#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_members.h"
#include "pipeline/translator.h"

namespace seqconv::internal::verbs {

/// Reads the options among a request's fields into `request`: those of SearchOptions and
/// SamplingOptions by their keys, "sample" and "seed". The request's own sampling is that of all
/// before. `all`: the search where it says nothing; `is_other`: whether a field of this name is
/// something else. Error for an option of a wrong type or value, one that comes twice, and
/// those that contradict each other.
void read_request_options(
    const std::vector<JsonMember>& members,
    const std::function<bool(const std::string&)>& is_other,
    const DecodingOptions& all,
    TranslationRequest& request);

}  // namespace seqconv::internal::verbs
