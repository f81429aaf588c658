#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "text/corpus/batch.h"
#include "text/corpus/pair_corpus.h"
#include "text/corpus/samples.h"

namespace seqconv::internal {

/// The [batching] section.
struct BatchingOptions {
  int64_t max_tokens = 4096;
  int64_t max_sentences = 0;
  int64_t multiple = 8;

  template <class Visitor>
  void visit(Visitor& v) {
    v("max_tokens",
      max_tokens,
      R"(Most tokens of a batch: rows x the longest side, </s> counted; at least 1)");
    v("max_sentences", max_sentences, "Most samples of a batch, 0 = no limit");
    v("multiple", multiple, "Rows of a batch: a multiple of this where possible, at least 1");
  }
};

/// Cuts a corpus into batches of similar length. Samples are sorted by source,
/// then target length (stably, on a permutation drawn from the seed) and packed
/// greedily (semantics.md 3.1, fairseq's rule); where there is no source,
/// target lengths alone decide. The batches are fixed; their order is a
/// function of (seed, epoch) alone. A sample that is longer than max_tokens
/// makes a batch by itself. Memory: 4 bytes a sample and 8 a batch, 4 more a
/// sample while sorting; lengths are read from the corpus.
class Batcher {
 public:
  Batcher(
      std::shared_ptr<const SampleSource> samples, const BatchingOptions& options, uint64_t seed);
  /// The same for sentence pairs.
  Batcher(PairCorpus corpus, const BatchingOptions& options, uint64_t seed);

  int64_t size() const;  ///< number of batches
  /// The order in which epoch `epoch` (from 1) visits the batches.
  std::vector<uint32_t> order(int64_t epoch) const;
  /// Batch number `index`, padded.
  Batch batch(int64_t index) const;
  /// Target tokens (those predicted) of batch `index`, without building it.
  int64_t target_tokens(int64_t index) const;

 private:
  std::span<const uint32_t> rows(int64_t index) const;

  std::shared_ptr<const SampleSource> samples_;
  uint64_t seed_;
  std::vector<uint32_t> sorted_;  // all samples
  std::vector<int64_t> starts_;   // size() + 1 positions in sorted_
};

}  // namespace seqconv::internal
