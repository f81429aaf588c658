#include "seqconv/metrics/exact.h"

#include <algorithm>

#include "characters.h"
#include "report.h"

namespace seqconv {

bool ExactMatch::matches(
    std::string_view hypothesis,
    const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  const auto prepared = [&](std::string_view line) {
    const std::string_view text = metrics::trim_start(metrics::trim_end(line));
    return options_.lowercase ? metrics::to_lower(text) : std::string(text);
  };
  const std::string wanted = prepared(hypothesis);
  return std::ranges::any_of(references, [&](const std::string& reference) {
    return prepared(reference) == wanted;
  });
}

bool ExactMatch::add(
    std::string_view hypothesis,
    const std::vector<std::string>& references) {
  metrics::check_references(references.size(), references_);
  const bool match = matches(hypothesis, references);
  matched_ += match;
  ++sentences_;
  return match;
}

double ExactMatch::score() const {
  return sentences_ == 0
      ? 0
      : 100 * static_cast<double>(matched_) / static_cast<double>(sentences_);
}

ScoreOfSums ExactMatch::score_of_sums() {
  const auto share = [](std::span<const double> sums) {
    return 100 * sums[0] / sums[1];
  };
  return {.exact = share, .single = {}};
}

std::string ExactMatch::signature() const {
  return concat(
      "nrefs:",
      references_,
      "|case:",
      options_.lowercase ? "lc" : "mixed",
      "|",
      metrics::kVersionTag);
}

std::string ExactMatch::report(int decimals) const {
  return concat(
      concat("EXACT|", signature(), " = ", metrics::fixed(score(), decimals)),
      concat(" (", matched_, " of ", sentences_, ")"));
}

}  // namespace seqconv
