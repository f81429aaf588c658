#pragma once

#include <memory>
#include <span>

#include "weights.h"
#include "workspace.h"

namespace seqconv::runtime {

/// Hidden rows to log-probabilities of words: one softmax, or an adaptive one.
class Output {
 public:
  virtual ~Output() = default;

  /// hidden [rows, C] -> natural log-probabilities [rows, V].
  virtual void log_probabilities(
      int64_t rows,
      const float* hidden,
      float* out,
      Workspace& space) const = 0;

  /// Those of one word a row: words [rows] -> out [rows]. Error for words
  /// outside the vocabulary.
  virtual void score(
      std::span<const int32_t> words,
      const float* hidden,
      float* out,
      Workspace& space) const = 0;
};

/// words: the name of the matrix that embedding and output share, "" where they
/// share none.
std::unique_ptr<Output> make_output(
    const ModelOptions& options,
    const Weights& weights,
    int64_t vocabulary,
    const std::string& words);

}  // namespace seqconv::runtime
