#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "text/corpus/batch.h"
#include "text/corpus/pair_corpus.h"

namespace seqconv::internal {

/// Gives what a Batcher cuts into batches: samples with lengths, which it turns
/// into padded batches. Safe to use from several threads.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// Number of samples.
  virtual int64_t size() const = 0;
  /// Ids of the source side, </s> counted; 0 where there is no source.
  virtual int64_t source_length(int64_t index) const = 0;
  /// Target ids that are predicted.
  virtual int64_t target_length(int64_t index) const = 0;
  /// The given samples as one padded batch; batch.pairs are their numbers.
  virtual Batch batch(std::span<const uint32_t> samples) const = 0;
  /// A checksum of the ids of a sample, by which samples of two sources of a kind compare.
  virtual uint64_t checksum(int64_t index) const;
};

/// Number of `samples` that are among `others` too, all ids alike.
int64_t count_shared(const SampleSource& samples, const SampleSource& others);

/// Sentence pairs as samples. Error when the sides do not have the same size.
std::shared_ptr<const SampleSource> pair_samples(PairCorpus corpus);

}  // namespace seqconv::internal
