#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::metrics {

/// An n-gram, its symbols packed into one number.
using Ngram = unsigned __int128;

struct NgramCount {
  Ngram ngram;
  int64_t count;
};

/// The different n-grams of a sequence, sorted, with their counts. Symbols are
/// below 2^bits; n * bits is at most 128.
inline std::vector<NgramCount>
count_ngrams(std::span<const uint32_t> symbols, size_t n, int bits) {
  std::vector<Ngram> ngrams;
  for (size_t i = 0; i + n <= symbols.size(); ++i) {
    Ngram ngram = 0;
    for (size_t j = 0; j < n; ++j)
      ngram = (ngram << bits) | symbols[i + j];
    ngrams.push_back(ngram);
  }
  std::sort(ngrams.begin(), ngrams.end());
  std::vector<NgramCount> counts;
  for (Ngram ngram : ngrams) {
    if (counts.empty() || counts.back().ngram != ngram)
      counts.push_back({ngram, 0});
    ++counts.back().count;
  }
  return counts;
}

/// Walks two sorted lists and calls f(n-gram, count in a, count in b) for all
/// n-grams of either; a missing one counts 0.
template <class Function>
void for_both(
    const std::vector<NgramCount>& a,
    const std::vector<NgramCount>& b,
    Function f) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].ngram < b[j].ngram)) {
      f(a[i].ngram, a[i].count, 0);
      ++i;
    } else if (i == a.size() || b[j].ngram < a[i].ngram) {
      f(b[j].ngram, 0, b[j].count);
      ++j;
    } else {
      f(a[i].ngram, a[i].count, b[j].count);
      ++i;
      ++j;
    }
  }
}

/// Sum of the smaller counts of common n-grams.
inline int64_t count_matches(
    const std::vector<NgramCount>& a,
    const std::vector<NgramCount>& b) {
  int64_t matches = 0;
  for_both(a, b, [&](Ngram, int64_t in_a, int64_t in_b) {
    matches += std::min(in_a, in_b);
  });
  return matches;
}

/// For each n-gram of either list the larger count.
inline std::vector<NgramCount> merge_larger(
    const std::vector<NgramCount>& a,
    const std::vector<NgramCount>& b) {
  std::vector<NgramCount> merged;
  for_both(a, b, [&](Ngram ngram, int64_t in_a, int64_t in_b) {
    merged.push_back({ngram, std::max(in_a, in_b)});
  });
  return merged;
}

}  // namespace seqconv::metrics
