#include "seqconv/decode/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "seqconv/base/error.h"

namespace seqconv {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr size_t kBlock = 64;

bool comes_before(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

// The best `limit` of the candidates offered, as a heap with the worst on top.
class BestCandidates {
 public:
  BestCandidates(
      size_t limit,
      const RowConstraint* constraint,
      std::span<const int32_t> excluded,
      std::vector<Candidate>& heap)
      : limit_(limit),
        constraint_(constraint),
        excluded_(excluded),
        heap_(heap) {}

  // Offered in ascending order, a token that only equals the threshold loses.
  float threshold() const {
    return heap_.size() < limit_ ? kMinusInfinity : heap_.front().score;
  }

  void offer(int32_t token, float score) {
    if (!(score > threshold()) || is_banned(token))
      return;
    if (heap_.size() == limit_) {
      std::pop_heap(heap_.begin(), heap_.end(), comes_before);
      heap_.pop_back();
    }
    heap_.push_back({token, score});
    std::push_heap(heap_.begin(), heap_.end(), comes_before);
  }

  void sort() { std::sort(heap_.begin(), heap_.end(), comes_before); }

 private:
  // Few tokens ever pass the threshold, so a linear search is cheap.
  bool is_banned(int32_t token) const {
    if (std::binary_search(excluded_.begin(), excluded_.end(), token))
      return true;
    return constraint_ != nullptr &&
        std::find(
            constraint_->banned.begin(),
            constraint_->banned.end(),
            token) != constraint_->banned.end();
  }

  size_t limit_;
  const RowConstraint* constraint_;
  std::span<const int32_t> excluded_;
  std::vector<Candidate>& heap_;
};

// The largest of kBlock scores, NaN left out. Eight at a time, which the
// compiler makes vectors of.
float largest_of_block(const float* scores) {
  constexpr size_t kAtOnce = 8;
  float largest[kAtOnce];
  std::fill_n(largest, kAtOnce, kMinusInfinity);
  for (size_t i = 0; i < kBlock; i += kAtOnce)
    for (size_t j = 0; j < kAtOnce; ++j)
      largest[j] = scores[i + j] > largest[j] ? scores[i + j] : largest[j];
  return *std::max_element(largest, largest + kAtOnce);
}

// What at least `count` of the blocks reach: worse scores are not among the
// best `count`.
float least_of_best(const std::vector<float>& largest, size_t count) {
  if (count > largest.size())
    return kMinusInfinity;
  static thread_local std::vector<float> sorted;
  sorted = largest;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
  return *at;
}

/// Where a token's score is; Error when it has none.
size_t place_of(const WordScores& scores, int32_t forced) {
  if (scores.words.empty()) {
    SEQCONV_CHECK(
        static_cast<size_t>(forced) < scores.log_probs.size(),
        "a forced token must be below the vocabulary size ",
        scores.log_probs.size(),
        ", but got ",
        forced);
    return static_cast<size_t>(forced);
  }
  const auto found = std::ranges::lower_bound(scores.words, forced);
  SEQCONV_CHECK(
      found != scores.words.end() && *found == forced,
      "a forced token must be one of the ",
      scores.words.size(),
      " words that the sentence may have, but got ",
      forced);
  return static_cast<size_t>(found - scores.words.begin());
}

void select_forced(
    const WordScores& scores,
    int32_t forced,
    std::vector<Candidate>& out) {
  const float score = scores.log_probs[place_of(scores, forced)];
  if (score > kMinusInfinity)
    out.push_back({forced, score});
}

/// Offers </s> and <unk>. Where the words after them begin.
size_t offer_special(
    const WordScores& scores,
    double unknown_penalty,
    BestCandidates& best) {
  size_t i = 0;
  for (; i < scores.log_probs.size() && scores.token(i) < kSpecialIds; ++i) {
    const int32_t token = scores.token(i);
    const double penalty = token == kUnknownId ? unknown_penalty : 0;
    if (is_producible(token))
      best.offer(token, static_cast<float>(scores.log_probs[i] - penalty));
  }
  return i;
}

}  // namespace

void select_candidates(
    const WordScores& scores,
    const RowConstraint* constraint,
    double unknown_penalty,
    std::span<const int32_t> excluded,
    int64_t count,
    std::vector<Candidate>& out) {
  out.clear();
  if (count <= 0)
    return;
  if (constraint != nullptr && constraint->forced >= 0) {
    select_forced(scores, constraint->forced, out);
    return;
  }

  BestCandidates best(static_cast<size_t>(count), constraint, excluded, out);
  const std::span<const float> log_probs = scores.log_probs;
  const size_t size = log_probs.size();
  const size_t first = offer_special(scores, unknown_penalty, best);
  const size_t blocks = (size - first) / kBlock;
  static thread_local std::vector<float> largest;  // no memory in a step
  largest.resize(blocks);
  for (size_t b = 0; b < blocks; ++b)
    largest[b] = largest_of_block(log_probs.data() + first + b * kBlock);
  const size_t banned =
      excluded.size() + (constraint == nullptr ? 0 : constraint->banned.size());
  const float least =
      least_of_best(largest, static_cast<size_t>(count) + banned);
  for (size_t b = 0; b < blocks; ++b) {
    if (largest[b] < least || !(largest[b] > best.threshold()))
      continue;
    const size_t begin = first + b * kBlock;
    for (size_t j = begin; j < begin + kBlock; ++j)
      best.offer(scores.token(j), log_probs[j]);
  }
  size_t i = first + blocks * kBlock;
  for (; i < size; ++i)
    best.offer(scores.token(i), log_probs[i]);
  best.sort();
}

void select_row(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out) {
  select_candidates(
      scores,
      constraints.rows.empty() ? nullptr : &constraints.rows[row],
      constraints.unknown_penalty,
      constraints.excluded,
      count,
      out);
  if (out.empty() && std::ranges::none_of(scores.log_probs, [](float value) {
        return std::isfinite(value);
      }))
    throw NoProbability(
        "the model gives no token a finite probability: its weights are too "
        "large, or damaged");
}

}  // namespace seqconv
