#include "seqconv/data/batcher.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "seqconv/base/error.h"
#include "seqconv/base/random.h"

namespace seqconv {
namespace {

constexpr uint64_t kSortDraw = 0;  // epochs are counted from 1

/// Sorts by a key stably, in two arrays: one pass of counting for each 16 bits
/// of the largest length, so one pass for any real corpus.
void sort_by_length(std::vector<uint32_t>& pairs, const TokenSource& sides) {
  constexpr int kBits = 16;
  constexpr uint64_t kDigits = uint64_t{1} << kBits;
  uint64_t longest = 0;
  for (int64_t i = 0; i < sides.size(); ++i)
    longest = std::max(longest, static_cast<uint64_t>(sides.length(i)));
  std::vector<uint32_t> sorted(pairs.size());
  for (int shift = 0; longest >> shift > 0; shift += kBits) {
    const auto digit = [&](int64_t i) {
      return (static_cast<uint64_t>(sides.length(i)) >> shift) % kDigits;
    };
    std::vector<uint32_t> next(kDigits + 1);
    for (int64_t i = 0; i < sides.size(); ++i)
      ++next[digit(i) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const uint32_t pair : pairs)
      sorted[next[digit(pair)]++] = pair;
    pairs.swap(sorted);
    if (shift + kBits >= 64)
      break;
  }
}

/// Tokens that a pair needs in a batch: its longer side with </s>.
int64_t pair_length(const PairCorpus& corpus, int64_t pair) {
  return std::max(corpus.source->length(pair), corpus.target->length(pair)) + 1;
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

  /// Ends a batch at a multiple; the pairs behind it start the next one.
  void cut() {
    const int64_t multiple = options_.multiple;
    const int64_t kept =
        std::max(count() / multiple * multiple, count() % multiple);
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

void check(const PairCorpus& corpus, const BatchingOptions& options) {
  if (options.max_tokens < 1)
    fail_usage(
        "batching.max_tokens must be >= 1, but got ",
        options.max_tokens);
  if (options.max_sentences < 0)
    fail_usage(
        "batching.max_sentences must be >= 0, but got ",
        options.max_sentences);
  if (options.multiple < 1)
    fail_usage("batching.multiple must be >= 1, but got ", options.multiple);
  SEQCONV_CHECK(
      corpus.source != nullptr && corpus.target != nullptr &&
          corpus.source->size() == corpus.target->size(),
      "a corpus needs two sides of the same size");
  SEQCONV_CHECK(corpus.size() > 0, "a corpus without pairs has no batches");
  SEQCONV_CHECK(
      corpus.size() <= std::numeric_limits<uint32_t>::max(),
      "a corpus may have at most 2^32 - 1 pairs, but has ",
      corpus.size());
}

}  // namespace

Batcher::Batcher(
    PairCorpus corpus,
    const BatchingOptions& options,
    uint64_t seed)
    : corpus_(std::move(corpus)), seed_(seed), starts_{0} {
  check(corpus_, options);
  pairs_.resize(static_cast<size_t>(corpus_.size()));
  std::iota(pairs_.begin(), pairs_.end(), 0u);
  shuffle(pairs_, mix_words(seed, kSortDraw));
  sort_by_length(pairs_, *corpus_.target);
  sort_by_length(pairs_, *corpus_.source);
  Packer packer(options, starts_);
  for (const uint32_t pair : pairs_)
    packer.add(pair_length(corpus_, pair));
  packer.finish();
}

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

std::span<const uint32_t> Batcher::pairs(int64_t index) const {
  SEQCONV_CHECK(
      index >= 0 && index < size(),
      "batch ",
      index,
      " was asked for, but there are ",
      size());
  const auto begin = static_cast<size_t>(starts_[static_cast<size_t>(index)]);
  const auto end = static_cast<size_t>(starts_[static_cast<size_t>(index) + 1]);
  return std::span(pairs_).subspan(begin, end - begin);
}

Batch Batcher::batch(int64_t index) const {
  const auto rows = pairs(index);
  const auto copy = [&](const TokenSource& side) {
    std::vector<std::vector<int32_t>> ids;
    ids.reserve(rows.size());
    for (const uint32_t pair : rows) {
      const auto tokens = side.tokens(pair);
      ids.emplace_back(tokens.begin(), tokens.end());
    }
    return ids;
  };
  Batch batch = make_batch(copy(*corpus_.source), copy(*corpus_.target));
  batch.pairs.assign(rows.begin(), rows.end());
  return batch;
}

int64_t Batcher::target_tokens(int64_t index) const {
  int64_t tokens = 0;
  for (const uint32_t pair : pairs(index))
    tokens += corpus_.target->length(pair) + 1;
  return tokens;
}

}  // namespace seqconv
