#include "metrics/rouge_values.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace seqconv::internal::metrics {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// To five decimals, as printf does it: exactly, where `value` lies between
/// two.
double round_5(double value) {
  constexpr double kScale = 1e5;
  const double scaled = value * kScale;
  double whole = std::nearbyint(scaled);
  const double lost = std::fma(value, kScale, -scaled);
  if (std::abs(scaled - whole) == 0.5 && lost != 0)
    whole = lost > 0 ? std::ceil(scaled) : std::floor(scaled);
  return whole / kScale;
}

/// Each from 0 to 1; F of the rounded others, as ROUGE-1.5.5 has it.
RougeValues values_155(const RougeOverlap& overlap, double alpha) {
  RougeValues values;
  values.recall = round_5(ratio(overlap.matched, overlap.reference));
  values.precision = round_5(ratio(overlap.matched, overlap.hypothesis));
  if (values.recall > 0 && values.precision > 0)
    values.f = round_5(
        values.precision * values.recall /
        ((1 - alpha) * values.precision + alpha * values.recall));
  return values;
}

RougeValues values_rouge_score(const RougeOverlap& overlap) {
  RougeValues values;
  values.recall = ratio(overlap.matched, overlap.reference);
  values.precision = ratio(overlap.matched, overlap.hypothesis);
  if (overlap.matched > 0)
    values.f = 2 * values.precision * values.recall / (values.precision + values.recall);
  return values;
}

/// The reference with the best recall to five decimals, the first of equal
/// ones; all but `without`.
const RougeOverlap& most_recalled(const std::vector<RougeOverlap>& overlaps, size_t without) {
  const RougeOverlap* best = nullptr;
  double best_recall = 0;
  for (size_t i = 0; i < overlaps.size(); ++i) {
    const double recall = round_5(ratio(overlaps[i].matched, overlaps[i].reference));
    if (i == without || (best != nullptr && recall <= best_recall))
      continue;
    best = &overlaps[i];
    best_recall = recall;
  }
  return *best;
}

RougeValues combine_155(const std::vector<RougeOverlap>& overlaps, const RougeOptions& options) {
  if (options.references == RougeReferences::kAverage) {
    RougeOverlap sum;
    for (const RougeOverlap& overlap : overlaps) {
      sum.matched += overlap.matched;
      sum.reference += overlap.reference;
      sum.hypothesis += overlap.hypothesis;
    }
    return values_155(sum, options.alpha);
  }
  const size_t count = overlaps.size();
  if (options.references == RougeReferences::kBest || count == 1)
    return values_155(most_recalled(overlaps, count), options.alpha);
  RougeValues sum;
  for (size_t without = 0; without < count; ++without)
    sum = sum_values(sum, values_155(most_recalled(overlaps, without), options.alpha));
  return scale_values(sum, 1 / static_cast<double>(count));
}

/// The reference with the best F, the first of equal ones.
RougeValues combine_rouge_score(const std::vector<RougeOverlap>& overlaps) {
  RougeValues best;
  for (size_t i = 0; i < overlaps.size(); ++i)
    if (const RougeValues values = values_rouge_score(overlaps[i]); i == 0 || values.f > best.f)
      best = values;
  return best;
}

}  // namespace

RougeValues sum_values(const RougeValues& a, const RougeValues& b) {
  return {a.recall + b.recall, a.precision + b.precision, a.f + b.f};
}

RougeValues scale_values(const RougeValues& values, double factor) {
  return {values.recall * factor, values.precision * factor, values.f * factor};
}

RougeValues combine_references(
    const std::vector<RougeOverlap>& overlaps, const RougeOptions& options) {
  switch (options.style) {
    case RougeStyle::kRouge155:
      return scale_values(combine_155(overlaps, options), 100);
    case RougeStyle::kRougeScore:
      return scale_values(combine_rouge_score(overlaps), 100);
  }
  fail("unknown style of ROUGE ", static_cast<int>(options.style));
}

}  // namespace seqconv::internal::metrics
