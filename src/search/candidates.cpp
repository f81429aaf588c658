#include "search/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"

namespace seqconv::internal {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

bool comes_before(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

const RowConstraint* constraint_of(const StepConstraints& constraints, size_t row) {
  return constraints.rows.empty() ? nullptr : &constraints.rows[row];
}

// Logits that are compared together, which the compiler makes vectors of.
constexpr size_t kAtOnce = 8;

// The largest of so many logits, NaN left out.
template <size_t kCount>
float largest_of(const float* logits) {
  float largest[kAtOnce];
  std::fill_n(largest, kAtOnce, kMinusInfinity);
  for (size_t i = 0; i < kCount; i += kAtOnce)
    for (size_t j = 0; j < kAtOnce; ++j)
      largest[j] = logits[i + j] > largest[j] ? logits[i + j] : largest[j];
  for (size_t half = kAtOnce / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j)
      largest[j] = largest[j + half] > largest[j] ? largest[j + half] : largest[j];
  return largest[0];
}

// The largest logit of each whole block.
std::span<const float> block_maxima(const WordScores& scores) {
  const size_t blocks = scores.logits.size() / kWordBlock;
  if (!scores.block_maxima.empty())
    return scores.block_maxima.first(blocks);
  static thread_local std::vector<float> found;  // no memory in a step
  found.resize(blocks);
  for (size_t b = 0; b < blocks; ++b)
    found[b] = largest_of<kWordBlock>(scores.logits.data() + b * kWordBlock);
  return found;
}

// What at least `count` of the blocks reach: worse logits are not among the
// best `count`.
float least_of_best(std::span<const float> maxima, size_t count) {
  if (count > maxima.size())
    return kMinusInfinity;
  static thread_local std::vector<float> sorted;
  sorted.assign(maxima.begin(), maxima.end());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
  return *at;
}

/// The score of a token that is forced or asked for; Error when it has none.
float score_of(const WordScores& scores, int32_t token, const char* kind) {
  size_t place = static_cast<size_t>(token);
  if (scores.words.empty()) {
    SEQCONV_CHECK(
        place < scores.logits.size(),
        kind,
        " token must be below the vocabulary size ",
        scores.logits.size(),
        ", but got ",
        token);
  } else {
    const auto found = std::ranges::lower_bound(scores.words, token);
    SEQCONV_CHECK(
        found != scores.words.end() && *found == token,
        kind,
        " token must be one of the ",
        scores.words.size(),
        " words that the sentence may have, but got ",
        token);
    place = static_cast<size_t>(found - scores.words.begin());
  }
  return scores.log_probability(scores.logits[place]);
}

void select_forced(const WordScores& scores, int32_t forced, std::vector<Candidate>& out) {
  out.clear();
  const float score = score_of(scores, forced, "a forced");
  if (score > kMinusInfinity)
    out.push_back({forced, score});
}

/// Adds those of the asked tokens that are not among the best.
void add_asked(
    const WordScores& scores, const std::vector<int32_t>& asked, std::vector<Candidate>& out) {
  const size_t best = out.size();
  for (const int32_t token : asked) {
    const auto there = std::ranges::find(
        out.begin(), out.begin() + static_cast<std::ptrdiff_t>(best), token, &Candidate::token);
    const float score = score_of(scores, token, "an asked");
    if (there == out.begin() + static_cast<std::ptrdiff_t>(best) && score > kMinusInfinity)
      out.push_back({token, score});
  }
}

}  // namespace

BestCandidates::BestCandidates(
    const StepConstraints& constraints, size_t row, int64_t count, std::vector<Candidate>& out)
    : constraints_(constraints),
      constraint_(constraint_of(constraints, row)),
      limit_(static_cast<size_t>(count)),
      heap_(out) {
  heap_.clear();
}

/// Of a token that is admitted.
void BestCandidates::put(int32_t token, float score) {
  if (!may_come(token))
    return;
  if (heap_.size() == limit_) {
    std::pop_heap(heap_.begin(), heap_.end(), comes_before);
    heap_.pop_back();
  }
  heap_.push_back({token, score});
  std::push_heap(heap_.begin(), heap_.end(), comes_before);
}

// Few tokens are ever admitted, so a linear search is cheap.
bool BestCandidates::may_come(int32_t token) const {
  if (!is_producible(token) || std::ranges::binary_search(constraints_.excluded, token))
    return false;
  return constraint_ == nullptr ||
      std::ranges::find(constraint_->banned, token) == constraint_->banned.end();
}

size_t BestCandidates::bans() const {
  return constraints_.excluded.size() + (constraint_ == nullptr ? 0 : constraint_->banned.size());
}

void BestCandidates::add_each(const WordScores& scores, size_t begin, size_t end) {
  const auto offer = [&](size_t i) {
    const float score = scores.log_probability(scores.logits[i]);
    if (admits(score))
      put(scores.token(i), score);
  };
  for (; begin + kAtOnce <= end; begin += kAtOnce) {
    const float largest = largest_of<kAtOnce>(scores.logits.data() + begin);
    if (admits(scores.log_probability(largest)))
      for (size_t i = begin; i < begin + kAtOnce; ++i)
        offer(i);
  }
  for (; begin < end; ++begin)
    offer(begin);
}

void BestCandidates::add(const WordScores& scores) {
  const size_t size = scores.logits.size();
  size_t begin = 0;
  for (; begin < size && scores.token(begin) <= kUnknownId; ++begin) {
    const int32_t token = scores.token(begin);
    float score = scores.log_probability(scores.logits[begin]);
    if (token == kUnknownId)
      score = static_cast<float>(score - constraints_.unknown_penalty);
    if (admits(score))
      put(token, score);
  }
  // Maxima say nothing of the first block, which may hold <unk>.
  add_each(scores, begin, std::min(size, kWordBlock));
  const std::span<const float> maxima = block_maxima(scores);
  if (maxima.empty())
    return;
  const float least = scores.log_probability(least_of_best(maxima.subspan(1), limit_ + bans()));
  for (size_t b = 1; b < maxima.size(); ++b) {
    const float largest = scores.log_probability(maxima[b]);
    if (largest >= least && admits(largest))
      add_each(scores, b * kWordBlock, (b + 1) * kWordBlock);
  }
  add_each(scores, maxima.size() * kWordBlock, size);
}

void BestCandidates::finish() {
  std::ranges::sort(heap_, comes_before);
}

void select_candidates(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out) {
  const RowConstraint* const constraint = constraint_of(constraints, row);
  if (count > 0 && constraint != nullptr && constraint->forced >= 0)
    return select_forced(scores, constraint->forced, out);
  BestCandidates best(constraints, row, count, out);
  if (count > 0)
    best.add(scores);
  best.finish();
  if (constraint != nullptr)
    add_asked(scores, constraint->asked, out);
}

void select_row(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out) {
  select_candidates(scores, constraints, row, count, out);
  if (out.empty() && std::ranges::none_of(scores.logits, [&](float logit) {
        return std::isfinite(scores.log_probability(logit));
      }))
    throw NoProbability(
        "the model gives no token a finite probability: its weights are too large, or damaged");
}

void NextTokens::best(const RowConstraint& constraint, int64_t count, std::vector<Candidate>& out) {
  select_candidates(
      {log_probabilities()},
      {.rows = {&constraint, 1}},
      /*row=*/0,
      count,
      out);
}

}  // namespace seqconv::internal
