#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "seqconv/requests.h"
#include "text/corpus/ibm_model1.h"
#include "text/corpus/link_order.h"

namespace seqconv::internal {

/// Tells which words of a pair translate each other: IBM model 1 in both directions, and
/// what they agree on grown by its neighbours (grow-diag-final-and of Koehn et al. 2003)
/// that are probable in both. Which of several equal words is meant the order of the others
/// tells (LinkOrder).
class WordAligner {
 public:
  /// Most products of both sides' lengths, summed up over the pairs: learning needs 8 bytes
  /// for each at most, and 16 a word of the pairs.
  static constexpr int64_t kMostProducts = int64_t{1} << 25;

  /// Ids of both sides are below these.
  WordAligner(int64_t source_words, int64_t target_words);

  /// A pair to learn from, as of IbmModel1::add; before learn(). False for one that is left
  /// out, with which the products would be more than kMostProducts.
  bool add(std::span<const int32_t> source, std::span<const int32_t> target);

  /// Learns from the pairs, and keeps none of them.
  void learn(int64_t iterations);

  /// The words of a pair that belong together, by source, then target.
  std::vector<AlignedTokens> align(
      std::span<const int32_t> source, std::span<const int32_t> target) const;

 private:
  using Rows = std::vector<std::vector<WordProbability>>;

  IbmModel1 to_target_;
  IbmModel1 to_source_;
  int64_t products_ = 0;
  Rows target_rows_;        // of source words
  Rows source_rows_;        // of target words
  LinkOrder source_order_;  // of the source words that target words belong to
  LinkOrder target_order_;
};

}  // namespace seqconv::internal
