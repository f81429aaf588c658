#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "seqconv/decode/search.h"
#include "seqconv/decode/step_decoder.h"

namespace seqconv::decode {

/// What bounds the hypotheses of one sentence. Steps count from 0: step s
/// produces token s of a hypothesis.
struct Limits {
  int64_t max_length = 0;  ///< tokens before </s>, which is forced then
  int64_t min_length = 0;  ///< </s> is banned in steps below this
  int64_t no_repeat_ngram = 0;
  std::vector<int32_t> prefix;  ///< forced; up to its </s> if it holds one
};

/// The limits of one sentence.
Limits make_limits(
    const SearchOptions& options,
    const SearchInput& input,
    int64_t max_steps);

/// Whether `step` can be constrained at all, whatever the hypothesis.
bool constrains(const Limits& limits, int64_t step);

/// What may follow `history` (the </s> that starts every target, then the
/// hypothesis; empty is fine when no n-gram is blocked). In this order: </s> at
/// the maximum length, the prefix, the bans.
RowConstraint row_constraint(
    const Limits& limits,
    int64_t step,
    std::span<const int32_t> history);

/// Appends every token that would complete an n-gram which `history` already
/// holds (each once). The </s> at the start counts: with n = 1 it bans </s>
/// until the maximum length, as in fairseq.
void ban_repeated_ngrams(
    std::span<const int32_t> history,
    int64_t n,
    std::vector<int32_t>& banned);

}  // namespace seqconv::decode
