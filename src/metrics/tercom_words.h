#pragma once

#include <string>
#include <string_view>

#include "metrics/ter.h"

namespace seqconv::internal::metrics {

/// The line with white space between its words, which are those that Tercom's
/// normaliser in sacreBLEU's form makes.
std::string space_tercom_words(std::string_view line, const TerOptions& options);

}  // namespace seqconv::internal::metrics
