#include "text/corpus/samples.h"

#include <unordered_map>

#include "base/checksum.h"
#include "base/error.h"

namespace seqconv::internal {
namespace {

class PairSamples : public SampleSource {
 public:
  explicit PairSamples(PairCorpus corpus) : corpus_(std::move(corpus)) {}

  int64_t size() const override { return corpus_.size(); }
  int64_t source_length(int64_t index) const override { return corpus_.source->length(index) + 1; }
  int64_t target_length(int64_t index) const override { return corpus_.target->length(index) + 1; }

  uint64_t checksum(int64_t index) const override {
    return internal::checksum(
        std::as_bytes(corpus_.target->tokens(index)),
        internal::checksum(std::as_bytes(corpus_.source->tokens(index))));
  }

  Batch batch(std::span<const uint32_t> samples) const override {
    const auto copy = [&](const TokenSource& side) {
      std::vector<std::vector<int32_t>> ids;
      ids.reserve(samples.size());
      for (const uint32_t pair : samples) {
        const auto tokens = side.tokens(pair);
        ids.emplace_back(tokens.begin(), tokens.end());
      }
      return ids;
    };
    Batch batch = make_batch(copy(*corpus_.source), copy(*corpus_.target));
    batch.pairs.assign(samples.begin(), samples.end());
    return batch;
  }

 private:
  PairCorpus corpus_;
};

}  // namespace

uint64_t SampleSource::checksum(int64_t index) const {
  const auto sample = static_cast<uint32_t>(index);
  const Batch one = batch({&sample, 1});
  return internal::checksum(
      std::as_bytes(std::span(one.target_out)),
      internal::checksum(std::as_bytes(std::span(one.source))));
}

int64_t count_shared(const SampleSource& samples, const SampleSource& others) {
  std::unordered_map<uint64_t, int64_t> counts;
  for (int64_t i = 0; i < samples.size(); ++i)
    ++counts[samples.checksum(i)];
  int64_t shared = 0;
  for (int64_t i = 0; i < others.size() && !counts.empty(); ++i)
    if (const auto found = counts.find(others.checksum(i)); found != counts.end()) {
      shared += found->second;
      counts.erase(found);
    }
  return shared;
}

std::shared_ptr<const SampleSource> pair_samples(PairCorpus corpus) {
  SEQCONV_CHECK(
      corpus.source != nullptr && corpus.target != nullptr &&
          corpus.source->size() == corpus.target->size(),
      "a corpus needs two sides of the same size");
  return std::make_shared<PairSamples>(std::move(corpus));
}

}  // namespace seqconv::internal
