#include "decode/constraints.h"

#include <algorithm>

#include "seqconv/decode/candidates.h"

namespace seqconv::decode {

Limits make_limits(
    const SearchOptions& options,
    const SearchInput& input,
    int64_t max_steps) {
  Limits limits;
  limits.max_length = maximum_length(options, input.source_length, max_steps);
  limits.min_length = options.min_length;
  limits.no_repeat_ngram = options.no_repeat_ngram;
  const auto end = std::find(input.prefix.begin(), input.prefix.end(), kEndId);
  limits.prefix.assign(input.prefix.begin(), end);
  if (end != input.prefix.end())
    limits.prefix.push_back(kEndId);
  return limits;
}

bool constrains(const Limits& limits, int64_t step) {
  return step >= limits.max_length || step < limits.min_length ||
      step < static_cast<int64_t>(limits.prefix.size()) ||
      limits.no_repeat_ngram > 0;
}

RowConstraint row_constraint(
    const Limits& limits,
    int64_t step,
    std::span<const int32_t> history) {
  RowConstraint row;
  if (step >= limits.max_length) {
    row.forced = kEndId;
  } else if (step < static_cast<int64_t>(limits.prefix.size())) {
    row.forced = limits.prefix[static_cast<size_t>(step)];
  } else {
    if (step < limits.min_length)
      row.banned.push_back(kEndId);
    if (limits.no_repeat_ngram > 0)
      ban_repeated_ngrams(history, limits.no_repeat_ngram, row.banned);
  }
  return row;
}

void ban_repeated_ngrams(
    std::span<const int32_t> history,
    int64_t n,
    std::vector<int32_t>& banned) {
  const int64_t length = static_cast<int64_t>(history.size());
  if (n <= 0 || length < n)
    return;
  const auto context = history.last(static_cast<size_t>(n - 1));
  for (int64_t start = 0; start + n <= length; ++start) {
    const auto ngram =
        history.subspan(static_cast<size_t>(start), static_cast<size_t>(n));
    // The </s> that begins a history is no word: its end is no repetition.
    if (ngram.back() == kEndId ||
        !std::equal(context.begin(), context.end(), ngram.begin()))
      continue;
    if (std::find(banned.begin(), banned.end(), ngram.back()) == banned.end())
      banned.push_back(ngram.back());
  }
}

}  // namespace seqconv::decode
