#pragma once

#include <string>
#include <string_view>

#include "seqconv/metrics/ter.h"

namespace seqconv::metrics {

/// The line with white space between its words, which are those that Tercom's
/// normaliser in sacreBLEU's form makes.
std::string space_tercom_words(
    std::string_view line,
    const TerOptions& options);

}  // namespace seqconv::metrics
