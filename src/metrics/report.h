#pragma once

#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace seqconv::internal::metrics {

/// The last part of every signature.
inline constexpr const char* kVersionTag = "version:seqconv-0.1.0";

/// A number with a fixed count of decimals.
inline std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// Checks that a sentence has references.
inline void check_references(size_t count) {
  SEQCONV_CHECK(count > 0, "a score needs at least one reference, but got 0");
}

/// In place of a number where sentences have other numbers of references.
inline constexpr size_t kVariedReferences = std::numeric_limits<size_t>::max();

/// Checks that a sentence has references, and remembers in `known` how many all
/// sentences so far have (0: there was none).
inline void check_references(size_t count, size_t& known) {
  check_references(count);
  known = known == 0 || known == count ? count : kVariedReferences;
}

/// For signatures: "2", or "var".
inline std::string references_text(size_t known) {
  return known == kVariedReferences ? "var" : std::to_string(known);
}

/// Feeds a whole corpus to a metric. Error when numbers of lines differ.
template <class Metric>
void add_corpus(
    Metric& metric,
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references) {
  for (size_t r = 0; r < references.size(); ++r)
    SEQCONV_CHECK(
        references[r].size() == hypotheses.size(),
        "hypotheses and references must have the same number of lines, but got ",
        hypotheses.size(),
        " hypotheses and ",
        references[r].size(),
        " lines in reference ",
        r + 1);
  check_references(references.size());
  SEQCONV_CHECK(!hypotheses.empty(), "a score needs hypotheses, but got 0");
  std::vector<std::string> row(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r)
      row[r] = references[r][i];
    metric.add(hypotheses[i], row);
  }
}

}  // namespace seqconv::internal::metrics
