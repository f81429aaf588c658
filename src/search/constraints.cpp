#include "search/constraints.h"

#include <algorithm>

#include "search/candidates.h"

namespace seqconv::internal::decode {

Limits make_limits(const DecodingOptions& options, const SearchInput& input, int64_t max_steps) {
  Limits limits;
  limits.max_length = maximum_length(options, input.source_length, max_steps);
  limits.min_length = options.min_length;
  limits.no_repeat_ngram = options.no_repeat_ngram;
  const auto end = std::find(input.prefix.begin(), input.prefix.end(), kEndId);
  limits.prefix.assign(input.prefix.begin(), end);
  if (end != input.prefix.end())
    limits.prefix.push_back(kEndId);
  limits.terms = Terms(input.terms, input.edges);
  return limits;
}

bool constrains(const Limits& limits, int64_t step) {
  return step >= limits.max_length || step < limits.min_length ||
      step < static_cast<int64_t>(limits.prefix.size()) || limits.no_repeat_ngram > 0 ||
      !limits.terms.empty();
}

RowConstraint row_constraint(
    const Limits& limits,
    int64_t step,
    const RepeatedNgrams& ngrams,
    int32_t last,
    const TermProgress& terms) {
  RowConstraint row;
  if (step >= limits.max_length) {
    row.forced = kEndId;
  } else if (step < static_cast<int64_t>(limits.prefix.size())) {
    row.forced = limits.prefix[static_cast<size_t>(step)];
  } else {
    if (step < limits.min_length || !limits.terms.are_met(terms))
      row.banned.push_back(kEndId);
    ngrams.ban(last, row.banned);
    limits.terms.ask(terms, row.asked);
  }
  return row;
}

}  // namespace seqconv::internal::decode
