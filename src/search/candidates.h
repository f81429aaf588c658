#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/special_ids.h"
#include "search/step_decoder.h"

namespace seqconv::internal {

/// Words are looked through in blocks of so many.
inline constexpr size_t kWordBlock = 64;

/// Natural log-probabilities of a row's words, of all or of some. Of a softmax
/// they may be given as logits with what makes log-probabilities of them: then
/// only those of the candidates are ever made.
struct WordScores {
  std::span<const float> logits;
  /// The token of each, ascending; empty: `first` and those that follow it.
  std::span<const int32_t> words{};
  int32_t first = 0;
  /// Are subtracted in this order. Zeros: the logits are log-probabilities.
  float maximum = 0;
  float log_sum = 0;
  float band_cost = 0;  ///< minus the log-probability of the words' own band
  /// The largest logit of each whole block, NaN left out; empty: not known.
  std::span<const float> block_maxima{};

  int32_t token(size_t i) const {
    return words.empty() ? first + static_cast<int32_t>(i) : words[i];
  }
  /// Never falls where the logit grows, so that maxima stay maxima.
  float log_probability(float logit) const { return ((logit - maximum) - log_sum) - band_cost; }
};

/// The best next tokens of row `row` of a step, chosen out of words that are
/// added in ascending order of their tokens. Forced tokens are not its affair.
class BestCandidates {
 public:
  /// Writes into `out`, which is cleared first: at most `count`.
  BestCandidates(
      const StepConstraints& constraints, size_t row, int64_t count, std::vector<Candidate>& out);

  /// Whether one of the next words can come in with this log-probability: a
  /// higher token that only equals the last of the best loses.
  bool admits(float log_probability) const {
    return log_probability >
        (heap_.size() < limit_ ? -std::numeric_limits<float>::infinity() : heap_.front().score);
  }
  void add(const WordScores& scores);
  /// Puts them in order; nothing is added afterwards.
  void finish();

 private:
  void put(int32_t token, float score);
  bool may_come(int32_t token) const;
  size_t bans() const;
  void add_each(const WordScores& scores, size_t begin, size_t end);

  const StepConstraints& constraints_;
  const RowConstraint* constraint_;
  size_t limit_;
  std::vector<Candidate>& heap_;  // the worst on top
};

/// For decoders that hold the scores of all words of row `row` of a step: its
/// `count` best next tokens into `out` (cleared first), best first, equal
/// scores by ascending token. Costs one pass, or none where maxima are known,
/// and no allocation once `out` has grown.
///
/// <pad>, <s>, banned and excluded tokens never come; NaN counts as minus
/// infinity, and minus infinity is left out. Asked tokens follow if they are not among the best,
/// in their order, whatever is banned; Error when one has no score. A forced token comes alone,
/// with its true log-probability: neither bans nor the penalty touch it. Error when it has none.
void select_candidates(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out);

/// The same. NoProbability where none of the scores is finite, whatever the
/// constraints.
void select_row(
    const WordScores& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out);

/// What may come next in a text.
class NextTokens {
 public:
  virtual ~NextTokens() = default;

  virtual int64_t vocabulary_size() const = 0;
  /// All natural log-probabilities [V], index = token.
  virtual std::span<const float> log_probabilities() = 0;
  /// The `count` best of them into `out`, as select_candidates chooses them.
  /// Where not all are asked for, not all need be made. May throw
  /// NoProbability where none is finite.
  virtual void best(const RowConstraint& constraint, int64_t count, std::vector<Candidate>& out);
};

}  // namespace seqconv::internal
