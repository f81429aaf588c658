#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_members.h"
#include "pipeline/translator.h"

namespace seqconv::internal::verbs {

/// The options that a request has of its own.
struct RequestOptions {
  SearchOptions search;
  std::optional<SamplingOptions> sampling;  ///< its translations are drawn
  std::optional<bool> ban_unknown;
  std::optional<uint64_t> seed;
};

/// The options among a request's fields: those of SearchOptions and
/// SamplingOptions by their keys, "sample" and "seed"; what they leave open is
/// as in `all`. Nothing where there is none. `is_other`: whether a field of
/// this name is something else. Error for an option of a wrong type or value,
/// one that comes twice, and those that contradict each other.
std::optional<RequestOptions> read_request_options(
    const std::vector<JsonMember>& members,
    const std::function<bool(const std::string&)>& is_other,
    const TranslatorOptions& all);

}  // namespace seqconv::internal::verbs
