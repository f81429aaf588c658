#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace seqconv::internal {

/// A decoder's model gives no token at all a finite probability: some of its
/// numbers overflow, or are NaN.
class SEQCONV_VISIBLE NoProbability : public Error {
 public:
  using Error::Error;
};

/// What a row may produce next. Everything optional; empty means no limit.
struct RowConstraint {
  /// The one token that must come (a target prefix, or </s> at the maximum
  /// length); -1: free. Its score is its true log-probability; the bans below
  /// do not apply to it.
  int32_t forced = -1;
  /// Tokens that may not come (repeated n-grams, </s> below the minimum).
  std::vector<int32_t> banned;
  /// Tokens whose candidates follow the best ones if they are not among them, whatever is banned:
  /// each once, those of a shortlist. Not beside a forced one.
  std::vector<int32_t> asked{};
};

struct Candidate {
  int32_t token = 0;
  float score = 0;  ///< natural log-probability, penalties applied
};

/// All that a step knows of one of its rows.
struct StepRow {
  size_t row = 0;
  std::span<const Candidate> best;  ///< what advance() returns for it
  /// Natural, of its next token [V], whatever its constraints: minus infinity
  /// of a word that its sentence cannot have.
  std::span<const float> log_probabilities;
};

/// The same for every row.
struct StepConstraints {
  /// Subtracted from the log-probability of <unk>.
  double unknown_penalty = 0;
  /// Tokens that may not come in any row, ascending. Their probability is not
  /// given to the others; a forced one comes all the same.
  std::span<const int32_t> excluded{};
  /// One entry a row, or empty: no row is constrained.
  std::span<const RowConstraint> rows;
  /// Is given each row once, in ascending order, before advance() returns; the
  /// spans end with the call. Where it is there, all log-probabilities are
  /// made, though never those of all rows together.
  std::function<void(const StepRow&)> each_row{};
};

/// Decoder state for a batch of sentences, one step at a time. Search sees
/// hypotheses, parents and scores; how the state is kept and reordered, and
/// whether log-probabilities of the whole vocabulary ever exist, is the
/// decoder's own affair. Torch-free.
///
/// Rows: before the first call there is one row a sentence, row i = sentence i,
/// that has read nothing.
class StepDecoder {
 public:
  virtual ~StepDecoder() = default;

  /// Sentences the decoder was started with.
  virtual int64_t sentences() const = 0;
  virtual int64_t vocabulary_size() const = 0;
  /// Most steps that the decoder can make (learned positions), or a very large
  /// number.
  virtual int64_t max_steps() const = 0;

  /// Replaces the rows: new row r continues old row parents[r] by tokens[r]
  /// (in the first call </s>, which starts every target). Rows may be dropped,
  /// repeated and reordered. Returns for each new row its `count` best next
  /// tokens, best first, equal scores by ascending token: fewer where the
  /// vocabulary or a forced token leaves fewer; then those that are asked for. <pad> and <s> never
  /// come; NaN counts as minus infinity; candidates of minus infinity are left out. The result is
  /// valid until the next call. NoProbability where a model leaves a row nothing, whatever the
  /// constraints.
  virtual const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) = 0;
};

}  // namespace seqconv::internal
