#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal {

/// A word, by its id, and how probable it is.
struct WordProbability {
  int32_t word = 0;
  float probability = 0;
};

/// Which words translate which, learned from sentence pairs: model 1 of Brown
/// et al. 1993, "The Mathematics of Statistical Machine Translation". Pairs are
/// in memory, 4 bytes a word and once more while it learns, and 8 bytes for
/// each target word.
class IbmModel1 {
 public:
  /// Ids of both sides are below these.
  IbmModel1(int64_t source_words, int64_t target_words);

  /// A pair to learn from. Error for an empty side and for ids out of range.
  void add(std::span<const int32_t> source, std::span<const int32_t> target);

  int64_t pairs() const { return source_.count(); }
  std::span<const int32_t> source(int64_t pair) const { return source_.ids_of(pair); }
  std::span<const int32_t> target(int64_t pair) const { return target_.ids_of(pair); }

  /// t(target word | source word) after so many iterations of expectation
  /// maximisation from equal probabilities, with an empty source word in every
  /// pair. [source words] rows by ascending target word; none of a word that
  /// did not come. Probabilities below 1e-6 are left out.
  std::vector<std::vector<WordProbability>> learn(int64_t iterations) const;

 private:
  friend class IbmModel1Iterations;

  /// Sentences one after the other.
  struct Side {
    int64_t words = 0;
    std::vector<int32_t> ids;
    std::vector<int64_t> begin = {0};

    int64_t count() const { return static_cast<int64_t>(begin.size()) - 1; }
    std::span<const int32_t> ids_of(int64_t i) const {
      const auto at = static_cast<size_t>(i);
      return std::span(ids).subspan(
          static_cast<size_t>(begin[at]), static_cast<size_t>(begin[at + 1] - begin[at]));
    }
    void check(std::span<const int32_t> sentence, const char* name) const;
    void add(std::span<const int32_t> sentence);
  };

  Side source_;
  Side target_;
};

}  // namespace seqconv::internal
