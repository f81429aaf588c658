#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal::metrics {

/// The bits of SortedNgrams for numbers below `symbols`.
inline int bits_of_symbols(uint32_t symbols) {
  return std::bit_width(symbols | 1U);
}

/// The n-grams of a sequence for n up to `orders`: its places, sorted by the
/// `orders` symbols that begin there, so that equal n-grams of any order lie
/// side by side. Symbols are below 2^bits - 1; an `Ngram`, which is an unsigned
/// number, has orders * bits bits or more.
template <class Ngram>
class SortedNgrams {
 public:
  SortedNgrams(std::span<const uint32_t> symbols, size_t orders, int bits)
      : orders_(orders), bits_(bits) {
    places_.reserve(symbols.size());
    // From the end on; 0 stands for what is behind it.
    Ngram ngram = 0;
    const int top = bits * static_cast<int>(orders - 1);
    for (size_t i = symbols.size(); i-- > 0;) {
      ngram = (ngram >> bits) | (Ngram{symbols[i]} + 1) << top;
      places_.push_back(ngram);
    }
    std::sort(places_.begin(), places_.end());
  }

  /// Number of n-grams, each as often as it comes.
  int64_t total(size_t n) const {
    return places_.size() < n ? 0 : static_cast<int64_t>(places_.size() - n + 1);
  }

  /// How many n-grams this and another sequence have in common, each as often
  /// as both have it. Without branches: which n-gram comes next is hard to
  /// foresee.
  int64_t common(const SortedNgrams& other, size_t n) const {
    const int shift = bits_ * static_cast<int>(orders_ - n);
    const Ngram last = (Ngram{1} << bits_) - 1;
    int64_t matches = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < places_.size() && j < other.places_.size()) {
      const Ngram ours = places_[i] >> shift;
      const Ngram theirs = other.places_[j] >> shift;
      // What is shorter than n ends in 0.
      matches += static_cast<int64_t>(ours == theirs) & static_cast<int64_t>((ours & last) != 0);
      i += ours <= theirs;
      j += theirs <= ours;
    }
    return matches;
  }

  /// The different n-grams of one order with their counts, in ascending order.
  class Reader {
   public:
    Reader(const SortedNgrams& ngrams, size_t n)
        : places_(ngrams.places_),
          shift_(ngrams.bits_ * static_cast<int>(ngrams.orders_ - n)),
          last_((Ngram{1} << ngrams.bits_) - 1) {}

    /// Goes on to the next n-gram; false behind the last one.
    bool next() {
      while (at_ < places_.size() && ((places_[at_] >> shift_) & last_) == 0)
        ++at_;
      if (at_ == places_.size()) {
        count = 0;
        return false;
      }
      ngram = places_[at_] >> shift_;
      const size_t begin = at_;
      while (at_ < places_.size() && places_[at_] >> shift_ == ngram)
        ++at_;
      count = static_cast<int64_t>(at_ - begin);
      return true;
    }
    /// The count of `wanted`, which is not below that of the call before.
    int64_t count_of(Ngram wanted) {
      while ((count == 0 || ngram < wanted) && next()) {}
      return count > 0 && ngram == wanted ? count : 0;
    }

    Ngram ngram = 0;
    int64_t count = 0;

   private:
    const std::vector<Ngram>& places_;
    int shift_;
    Ngram last_;
    size_t at_ = 0;
  };

 private:
  size_t orders_;
  int bits_;
  std::vector<Ngram> places_;
};

/// How many n-grams of `found` the references have, each as often as it is in
/// one of them.
template <class Ngram>
int64_t count_matches(
    const SortedNgrams<Ngram>& found, std::span<const SortedNgrams<Ngram>> references, size_t n) {
  if (references.size() == 1)
    return found.common(references[0], n);
  using Reader = typename SortedNgrams<Ngram>::Reader;
  std::vector<Reader> readers;
  for (const SortedNgrams<Ngram>& reference : references)
    readers.emplace_back(reference, n);
  int64_t matches = 0;
  for (Reader ours(found, n); ours.next();) {
    int64_t allowed = 0;
    for (Reader& reader : readers)
      allowed = std::max(allowed, reader.count_of(ours.ngram));
    matches += std::min(ours.count, allowed);
  }
  return matches;
}

}  // namespace seqconv::internal::metrics
