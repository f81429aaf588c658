#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/weights.h"
#include "runtime/workspace.h"
#include "search/candidates.h"

namespace seqconv::internal::runtime {

/// Brings hidden rows to the output's own width, where it has one.
class Projection {
 public:
  Projection(const ModelOptions& options, const Weights& weights);

  /// hidden [rows, C] -> [rows, D], which may be the same.
  const float* run(int64_t rows, const float* hidden, Workspace::Frame& frame) const;

 private:
  std::optional<Linear> linear_;
};

/// Hidden rows to logits of words, of all or of some.
class WordLogits {
 public:
  WordLogits(int64_t dim, Projection projection, Linear words)
      : dim_(dim), projection_(std::move(projection)), words_(std::move(words)) {}

  int64_t dim() const { return dim_; }
  int64_t words() const { return words_.weight.outputs(); }
  /// hidden [rows, C] -> out [rows, words()].
  void run(int64_t rows, const float* hidden, float* out, Workspace& space) const;
  /// The same to some of the words, by their ids. Their weights are gathered in
  /// `kept`, which takes as long as a few rows of the product.
  WordLogits only(std::span<const int32_t> words, Workspace::Frame& kept) const {
    auto* const memory = kept.take<std::byte>(words_.weight.bytes_of_rows(std::ssize(words)));
    return {dim_, projection_, {words_.weight.rows(words, memory), {}}};
  }

 private:
  int64_t dim_;
  Projection projection_;
  Linear words_;
};

/// Hidden rows to log-probabilities of words: one softmax, or an adaptive one.
class Output {
 public:
  virtual ~Output() = default;

  /// hidden [rows, C] -> natural log-probabilities [rows, V].
  virtual void log_probabilities(
      int64_t rows, const float* hidden, float* out, Workspace& space) const = 0;

  /// The `count` best next tokens, at least one, of one row, hidden [C]: those
  /// that select_row() chooses out of its log-probabilities, the same bits, but
  /// not all of these are made.
  virtual void candidates(
      const float* hidden,
      const RowConstraint& constraint,
      int64_t count,
      std::vector<Candidate>& out,
      Workspace& space) const = 0;

  /// Log-probabilities of one word a row: words [rows] -> out [rows]. Error for
  /// words outside the vocabulary.
  virtual void score(
      std::span<const int32_t> words, const float* hidden, float* out, Workspace& space) const = 0;

  /// True when one softmax of logits gives the log-probabilities of all words.
  virtual bool has_logits() const { return true; }
  /// The logits of all words. Error of an adaptive softmax.
  virtual const WordLogits& logits() const = 0;
};

/// words: the name of the matrix that embedding and output share, "" where they
/// share none.
std::unique_ptr<Output> make_output(
    const ModelOptions& options,
    const Weights& weights,
    int64_t vocabulary,
    const std::string& words);

}  // namespace seqconv::internal::runtime
