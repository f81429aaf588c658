#pragma once

#include <algorithm>
#include <span>

#include "base/error.h"
#include "kernels/decoding.h"
#include "runtime/workspace.h"
#include "search/candidates.h"

/// The work of outputs on rows of logits.
namespace seqconv::internal::runtime {

/// Rows whose probabilities of all words are in memory at a time.
inline int64_t rows_in_chunk(int64_t vocabulary) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  return std::max<int64_t>(1, kNumbers / vocabulary);
}

/// Error for words outside the vocabulary.
inline void check_word(int32_t word, int64_t vocabulary) {
  SEQCONV_CHECK(
      word >= 0 && word < vocabulary, "ids must be in [0, ", vocabulary, "), but got ", word);
}

/// logits [rows, V] -> log-probabilities, in place.
inline void normalize(int64_t rows, int64_t vocabulary, float* logits) {
  for (int64_t r = 0; r < rows; ++r)
    kernels::log_softmax_row(logits + r * vocabulary, vocabulary);
}

/// As a span.
inline std::span<const float> span_of(const float* numbers, int64_t count) {
  return {numbers, static_cast<size_t>(count)};
}

/// Scores of logits whose softmax is the words' probabilities.
inline WordScores softmax_scores(std::span<const float> logits, Workspace::Frame& frame) {
  static_assert(kWordBlock == kernels::kMaximaBlock);
  const size_t blocks = logits.size() / kWordBlock;
  float* const maxima = frame.take(static_cast<int64_t>(blocks));
  const kernels::SoftmaxTerms terms =
      kernels::softmax_terms(logits.data(), std::ssize(logits), maxima);
  return {
      .logits = logits,
      .maximum = terms.maximum,
      .log_sum = terms.log_sum,
      .block_maxima = {maxima, blocks}};
}

}  // namespace seqconv::internal::runtime
