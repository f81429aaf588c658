#include "metrics/common_subsequence.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace seqconv::internal::metrics {
namespace {

constexpr size_t kWordBits64 = 64;
constexpr size_t kTableWords = 1 << 20;
constexpr uint32_t kNoMask = std::numeric_limits<uint32_t>::max();

/// What adding a carry alone does to a word of the state.
uint64_t carry_on(uint64_t& word) {
  const uint64_t sum = word + 1;
  word |= sum;
  return sum == 0 ? 1 : 0;
}

}  // namespace

void CommonSubsequence::set_reference(std::span<const uint32_t> reference, size_t symbols) {
  reference_ = reference;
  words_ = (reference.size() + kWordBits64 - 1) / kWordBits64;
  masks_.clear();
  for (uint32_t symbol : symbols_)
    first_[symbol] = kNoMask;
  symbols_.clear();
  first_.resize(symbols, kNoMask);
  // From the end, so that a symbol's first mask is its lowest.
  for (size_t i = reference.size(); i-- > 0;) {
    const uint32_t symbol = reference[i];
    if (symbol >= symbols)
      continue;
    const auto word = static_cast<uint32_t>(i / kWordBits64);
    uint32_t& first = first_[symbol];
    if (first == kNoMask)
      symbols_.push_back(symbol);
    if (first == kNoMask || masks_[first].word != word) {
      masks_.push_back({0, word, first});
      first = static_cast<uint32_t>(masks_.size() - 1);
    }
    masks_[first].bits |= uint64_t{1} << (i % kWordBits64);
  }
}

/// A zero bit of a state says that the subsequence grows at that place of the
/// reference; before any hypothesis there is none.
void CommonSubsequence::start(std::span<uint64_t> state) const {
  std::fill(state.begin(), state.end(), ~uint64_t{0});
}

void CommonSubsequence::advance(uint32_t symbol, std::span<uint64_t> state) const {
  uint64_t carry = 0;
  size_t at = 0;
  for (uint32_t m = first_[symbol]; m != kNoMask; m = masks_[m].next) {
    const Mask& mask = masks_[m];
    for (; carry != 0 && at < mask.word; ++at)
      carry = carry_on(state[at]);
    at = mask.word;
    const uint64_t old = state[at];
    const uint64_t sum = old + (old & mask.bits);
    const uint64_t total = sum + carry;
    carry = (sum < old || total < sum) ? 1 : 0;
    state[at++] = total | (old & ~mask.bits);
  }
  for (; carry != 0 && at < state.size(); ++at)
    carry = carry_on(state[at]);
}

size_t CommonSubsequence::length(std::span<const uint32_t> hypothesis) {
  state_.resize(words_);
  start(state_);
  for (uint32_t symbol : hypothesis)
    advance(symbol, state_);
  size_t zeros = 0;
  for (uint64_t word : state_)
    zeros += static_cast<size_t>(std::popcount(~word));
  return zeros;
}

/// Keeps the states before each block of symbols whose rows fill the table, and
/// returns the size of a block.
size_t CommonSubsequence::keep_starts(std::span<const uint32_t> hypothesis) {
  const size_t block = std::max<size_t>(1, kTableWords / words_);
  state_.resize(words_);
  start(state_);
  starts_ = state_;
  const size_t last = (hypothesis.size() - 1) / block * block;
  for (size_t j = 0; j < last; ++j) {
    advance(hypothesis[j], state_);
    if ((j + 1) % block == 0)
      starts_.insert(starts_.end(), state_.begin(), state_.end());
  }
  return block;
}

void CommonSubsequence::mark(std::span<const uint32_t> hypothesis, std::vector<uint8_t>& marked) {
  if (reference_.empty() || hypothesis.empty())
    return;
  const size_t block = keep_starts(hypothesis);
  size_t i = reference_.size();
  size_t j = hypothesis.size();
  while (i > 0 && j > 0) {
    const size_t begin = (j - 1) / block * block;
    rows_.resize((j - begin + 1) * words_);
    const auto start_of_block =
        starts_.begin() + static_cast<std::ptrdiff_t>(begin / block * words_);
    std::copy_n(start_of_block, words_, rows_.begin());
    for (size_t k = begin; k < j; ++k) {
      uint64_t* row = rows_.data() + (k - begin) * words_;
      std::copy_n(row, words_, row + words_);
      advance(hypothesis[k], {row + words_, words_});
    }
    while (i > 0 && j > begin) {
      const uint64_t* row = rows_.data() + (j - begin) * words_;
      const size_t place = i - 1;
      const bool grows = (row[place / kWordBits64] >> (place % kWordBits64) & 1) == 0;
      if (reference_[place] == hypothesis[j - 1])
        marked[place] = 1, --i, --j;
      else if (grows)
        --j;
      else
        --i;
    }
  }
}

}  // namespace seqconv::internal::metrics
