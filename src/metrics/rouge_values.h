#pragma once

#include <cstdint>
#include <vector>

#include "metrics/rouge.h"

namespace seqconv::internal::metrics {

/// What a reference and the summary have in common, in one measure.
struct RougeOverlap {
  int64_t matched = 0;
  int64_t reference = 0;
  int64_t hypothesis = 0;
};

RougeValues sum_values(const RougeValues& a, const RougeValues& b);
RougeValues scale_values(const RougeValues& values, double factor);

/// The values of a measure, from 0 to 100, as the style makes them of the
/// overlaps with all references (one or more).
RougeValues combine_references(
    const std::vector<RougeOverlap>& overlaps, const RougeOptions& options);

}  // namespace seqconv::internal::metrics
