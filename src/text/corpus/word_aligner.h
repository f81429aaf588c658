#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "seqconv/requests.h"
#include "text/corpus/ibm_model1.h"

namespace seqconv::internal {

/// Tells which words of a pair translate each other: IBM model 1 in both directions, and
/// what they agree on grown by its neighbours (grow-diag-final-and of Koehn et al. 2003)
/// that are probable in both.
class WordAligner {
 public:
  /// Ids of both sides are below these.
  WordAligner(int64_t source_words, int64_t target_words);

  /// A pair to learn from, as of IbmModel1::add; before learn().
  void add(std::span<const int32_t> source, std::span<const int32_t> target);
  int64_t pairs() const { return to_target_.pairs(); }

  void learn(int64_t iterations);

  /// The words of a pair that belong together, by source, then target. The nearest to
  /// the same place of its sentence counts of words that are equally probable.
  std::vector<AlignedTokens> align(
      std::span<const int32_t> source, std::span<const int32_t> target) const;

 private:
  using Rows = std::vector<std::vector<WordProbability>>;

  IbmModel1 to_target_;
  IbmModel1 to_source_;
  Rows target_rows_;  // of source words
  Rows source_rows_;  // of target words
};

}  // namespace seqconv::internal
