#include "text/corpus/samples.h"

#include "base/error.h"

namespace seqconv::internal {
namespace {

class PairSamples : public SampleSource {
 public:
  explicit PairSamples(PairCorpus corpus) : corpus_(std::move(corpus)) {}

  int64_t size() const override { return corpus_.size(); }
  int64_t source_length(int64_t index) const override { return corpus_.source->length(index) + 1; }
  int64_t target_length(int64_t index) const override { return corpus_.target->length(index) + 1; }

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

std::shared_ptr<const SampleSource> pair_samples(PairCorpus corpus) {
  SEQCONV_CHECK(
      corpus.source != nullptr && corpus.target != nullptr &&
          corpus.source->size() == corpus.target->size(),
      "a corpus needs two sides of the same size");
  return std::make_shared<PairSamples>(std::move(corpus));
}

}  // namespace seqconv::internal
