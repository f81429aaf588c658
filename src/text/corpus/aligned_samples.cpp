#include "text/corpus/aligned_samples.h"

#include <algorithm>

namespace seqconv::internal {
namespace {

constexpr int64_t kIterations = 5;
constexpr int64_t kMostTokens = 200;  // of a side

/// A row of a batch, [B, steps] in all, without padding and </s>.
std::vector<int32_t> row_of(
    const std::vector<int64_t>& ids, int64_t steps, int64_t row, int64_t length) {
  const auto begin = ids.begin() + row * steps;
  return {begin, begin + length - 1};
}
std::vector<int32_t> source_of(const Batch& batch, int64_t row) {
  return row_of(
      batch.source, batch.source_steps, row, batch.source_lengths[static_cast<size_t>(row)]);
}
std::vector<int32_t> target_of(const Batch& batch, int64_t row) {
  return row_of(
      batch.target_out, batch.target_steps, row, batch.target_lengths[static_cast<size_t>(row)]);
}

class AlignedSamples : public SampleSource {
 public:
  AlignedSamples(
      std::shared_ptr<const SampleSource> samples, std::shared_ptr<const WordAligner> words)
      : samples_(std::move(samples)), words_(std::move(words)) {}

  int64_t size() const override { return samples_->size(); }
  int64_t source_length(int64_t index) const override { return samples_->source_length(index); }
  int64_t target_length(int64_t index) const override { return samples_->target_length(index); }
  uint64_t checksum(int64_t index) const override { return samples_->checksum(index); }

  Batch batch(std::span<const uint32_t> samples) const override {
    Batch batch = samples_->batch(samples);
    for (int64_t row = 0; row < batch.rows; ++row)
      for (const AlignedTokens& link : words_->align(source_of(batch, row), target_of(batch, row)))
        batch.links.push_back({row, link.source, link.target});
    return batch;
  }

 private:
  std::shared_ptr<const SampleSource> samples_;
  std::shared_ptr<const WordAligner> words_;
};

}  // namespace

std::vector<uint32_t> spread_samples(const SampleSource& samples, int64_t most) {
  const int64_t stride = std::max<int64_t>((samples.size() + most - 1) / most, 1);
  std::vector<uint32_t> chosen;
  for (int64_t i = 0; i < samples.size(); i += stride) {
    const int64_t source = samples.source_length(i), target = samples.target_length(i);
    if (source > 1 && target > 1 && source <= kMostTokens && target <= kMostTokens)
      chosen.push_back(static_cast<uint32_t>(i));
  }
  return chosen;
}

std::vector<uint32_t> spread_samples_to_learn(const SampleSource& samples, int64_t most) {
  std::vector<uint32_t> chosen = spread_samples(samples, most);
  const auto products = [&] {
    int64_t sum = 0;
    for (const uint32_t i : chosen)
      sum += samples.source_length(i) * samples.target_length(i);
    return sum;
  };
  while (products() > WordAligner::kMostProducts) {
    size_t kept = 0;
    for (size_t i = 0; i < chosen.size(); i += 2)
      chosen[kept++] = chosen[i];
    chosen.resize(kept);
  }
  return chosen;
}

WordAligner learn_words(
    const SampleSource& samples,
    int64_t source_vocabulary,
    int64_t target_vocabulary,
    int64_t most) {
  WordAligner words(source_vocabulary, target_vocabulary);
  for (const uint32_t sample : spread_samples_to_learn(samples, most)) {
    const Batch one = samples.batch({&sample, 1});
    words.add(source_of(one, 0), target_of(one, 0));
  }
  words.learn(kIterations);
  return words;
}

std::vector<AlignedTokens> align_sample(
    const WordAligner& words, const SampleSource& samples, uint32_t sample) {
  const Batch one = samples.batch({&sample, 1});
  return words.align(source_of(one, 0), target_of(one, 0));
}

std::shared_ptr<const SampleSource> aligned_samples(
    std::shared_ptr<const SampleSource> samples, std::shared_ptr<const WordAligner> words) {
  return std::make_shared<AlignedSamples>(std::move(samples), std::move(words));
}

}  // namespace seqconv::internal
