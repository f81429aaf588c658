#include "text/corpus/batcher.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace seqconv::internal {
namespace {

constexpr uint64_t kSortDraw = 0;  // epochs are counted from 1

/// Lengths of one side of all samples.
using SideLength = int64_t (SampleSource::*)(int64_t) const;

/// Sorts by a key stably, in two arrays: one pass of counting for each 16 bits
/// of the largest length, so one pass for any real corpus and none for a side
/// that is not there.
void sort_by_length(std::vector<uint32_t>& rows, const SampleSource& samples, SideLength side) {
  constexpr int kBits = 16;
  constexpr uint64_t kDigits = uint64_t{1} << kBits;
  const auto length = [&](int64_t i) { return static_cast<uint64_t>((samples.*side)(i)); };
  uint64_t longest = 0;
  for (int64_t i = 0; i < samples.size(); ++i)
    longest = std::max(longest, length(i));
  if (longest == 0)
    return;
  std::vector<uint32_t> sorted(rows.size());
  for (int shift = 0; longest >> shift > 0; shift += kBits) {
    const auto digit = [&](int64_t i) { return (length(i) >> shift) % kDigits; };
    std::vector<uint32_t> next(kDigits + 1);
    for (int64_t i = 0; i < samples.size(); ++i)
      ++next[digit(i) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const uint32_t row : rows)
      sorted[next[digit(row)]++] = row;
    rows.swap(sorted);
    if (shift + kBits >= 64)
      break;
  }
}

/// Tokens that a sample needs in a batch: its longer side.
int64_t sample_length(const SampleSource& samples, int64_t sample) {
  return std::max(samples.source_length(sample), samples.target_length(sample));
}

/// Fills batches one by one (semantics.md 3.1).
class Packer {
 public:
  Packer(const BatchingOptions& options, std::vector<int64_t>& starts)
      : options_(options), starts_(starts) {}

  void add(int64_t length) {
    // Twice when what a full batch leaves over is full again with this one.
    while (!lengths_.empty() && is_full_with(length))
      cut();
    lengths_.push_back(length);
    longest_ = std::max(longest_, length);
  }

  void finish() {
    if (!lengths_.empty())
      starts_.push_back(starts_.back() + count());
  }

 private:
  int64_t count() const { return static_cast<int64_t>(lengths_.size()); }

  bool is_full_with(int64_t length) const {
    if (options_.max_sentences > 0 && count() >= options_.max_sentences)
      return true;
    // Division: the product could overflow.
    return std::max(longest_, length) > options_.max_tokens / (count() + 1);
  }

  /// Ends a batch at a multiple; the samples behind it start the next one.
  void cut() {
    const int64_t multiple = options_.multiple;
    const int64_t kept = std::max(count() / multiple * multiple, count() % multiple);
    starts_.push_back(starts_.back() + kept);
    lengths_.erase(lengths_.begin(), lengths_.begin() + kept);
    longest_ = 0;
    for (const int64_t length : lengths_)
      longest_ = std::max(longest_, length);
  }

  const BatchingOptions& options_;
  std::vector<int64_t>& starts_;
  std::vector<int64_t> lengths_;  // of the batch that is being filled
  int64_t longest_ = 0;
};

void check(const SampleSource* samples, const BatchingOptions& options) {
  if (options.max_tokens < 1)
    fail_usage("batching.max_tokens must be >= 1, but got ", options.max_tokens);
  if (options.max_sentences < 0)
    fail_usage("batching.max_sentences must be >= 0, but got ", options.max_sentences);
  if (options.multiple < 1)
    fail_usage("batching.multiple must be >= 1, but got ", options.multiple);
  SEQCONV_CHECK(samples != nullptr, "a batcher needs samples");
  SEQCONV_CHECK(samples->size() > 0, "a corpus without samples has no batches");
  SEQCONV_CHECK(
      samples->size() <= std::numeric_limits<uint32_t>::max(),
      "a corpus may have at most 2^32 - 1 samples, but has ",
      samples->size());
}

}  // namespace

Batcher::Batcher(
    std::shared_ptr<const SampleSource> samples, const BatchingOptions& options, uint64_t seed)
    : samples_(std::move(samples)), seed_(seed), starts_{0} {
  check(samples_.get(), options);
  sorted_.resize(static_cast<size_t>(samples_->size()));
  std::iota(sorted_.begin(), sorted_.end(), 0u);
  shuffle(sorted_, mix_words(seed, kSortDraw));
  sort_by_length(sorted_, *samples_, &SampleSource::target_length);
  sort_by_length(sorted_, *samples_, &SampleSource::source_length);
  Packer packer(options, starts_);
  for (const uint32_t sample : sorted_)
    packer.add(sample_length(*samples_, sample));
  packer.finish();
}

Batcher::Batcher(PairCorpus corpus, const BatchingOptions& options, uint64_t seed)
    : Batcher(pair_samples(std::move(corpus)), options, seed) {}

int64_t Batcher::size() const {
  return static_cast<int64_t>(starts_.size()) - 1;
}

std::vector<uint32_t> Batcher::order(int64_t epoch) const {
  SEQCONV_CHECK(epoch >= 1, "epochs count from 1, but got ", epoch);
  std::vector<uint32_t> batches(static_cast<size_t>(size()));
  std::iota(batches.begin(), batches.end(), 0u);
  shuffle(batches, mix_words(seed_, static_cast<uint64_t>(epoch)));
  return batches;
}

std::span<const uint32_t> Batcher::rows(int64_t index) const {
  SEQCONV_CHECK(
      index >= 0 && index < size(), "batch ", index, " was asked for, but there are ", size());
  const auto begin = static_cast<size_t>(starts_[static_cast<size_t>(index)]);
  const auto end = static_cast<size_t>(starts_[static_cast<size_t>(index) + 1]);
  return std::span(sorted_).subspan(begin, end - begin);
}

Batch Batcher::batch(int64_t index) const {
  return samples_->batch(rows(index));
}

int64_t Batcher::target_tokens(int64_t index) const {
  int64_t tokens = 0;
  for (const uint32_t sample : rows(index))
    tokens += samples_->target_length(sample);
  return tokens;
}

}  // namespace seqconv::internal
