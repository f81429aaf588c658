#include "metrics/exact.h"

#include <algorithm>

#include "base/characters.h"
#include "metrics/report.h"

namespace seqconv::internal {

std::vector<double> ExactStatistics::numbers() const {
  return {static_cast<double>(matched), static_cast<double>(sentences)};
}

ExactStatistics ExactMatch::count(
    std::string_view hypothesis, const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  const auto prepared = [&](std::string_view line) {
    const std::string_view text = trim_start(trim_end(line));
    return options_.lowercase ? to_lower(text) : std::string(text);
  };
  const std::string wanted = prepared(hypothesis);
  const bool matches = std::ranges::any_of(
      references, [&](const std::string& reference) { return prepared(reference) == wanted; });
  return {matches ? 1 : 0, 1};
}

void ExactMatch::add_counts(const ExactStatistics& counts, size_t references) {
  metrics::check_references(references, references_);
  statistics_.matched += counts.matched;
  statistics_.sentences += counts.sentences;
}

double ExactMatch::score() const {
  return statistics_.sentences == 0
      ? 0
      : 100 * static_cast<double>(statistics_.matched) / static_cast<double>(statistics_.sentences);
}

ScoreOfSums ExactMatch::score_of_sums() {
  const auto share = [](std::span<const double> sums) { return 100 * sums[0] / sums[1]; };
  return {.exact = share, .single = {}};
}

std::string ExactMatch::signature() const {
  return concat(
      "nrefs:",
      metrics::references_text(references_),
      "|case:",
      options_.lowercase ? "lc" : "mixed",
      "|",
      metrics::kVersionTag);
}

std::string ExactMatch::report(int decimals) const {
  return concat(
      concat("EXACT|", signature(), " = ", metrics::fixed(score(), decimals)),
      concat(" (", statistics_.matched, " of ", statistics_.sentences, ")"));
}

}  // namespace seqconv::internal
