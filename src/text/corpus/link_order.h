#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace seqconv::internal {

/// The places in one sentence that a word of the other may belong to, ascending; none: it has
/// no translation there.
using Places = std::vector<int64_t>;

/// Chooses among places that the words leave equal by the order of others: the jumps from the
/// place of a word to that of the next (as those of Vogel et al. 1996), learned from words
/// that have one place alone.
class LinkOrder {
 public:
  /// Learns from the places of a sentence's words.
  void add(const std::vector<Places>& words);

  /// The place of each word, -1 of one that has none: those whose jumps are together the most
  /// probable; of equal ones the nearest to the same place of their sentence, which has
  /// `length` words.
  std::vector<int64_t> choose(const std::vector<Places>& words, int64_t length) const;

 private:
  static constexpr int64_t kBuckets = 16;  // of each direction

  /// The best way to each place of a word, by the sum of log_probability, and where it comes
  /// from: which place of the word before.
  struct Ways {
    std::vector<double> scores;
    std::vector<std::size_t> from;
  };

  /// The place of a jump in counts_: farther than 4, one of many that are about as wide.
  static std::size_t bucket(int64_t jump);
  /// Up to a constant, as far as all ways have as many jumps.
  double log_probability(int64_t jump) const;
  /// `before`: the places that `ways` lead to; nullptr at the beginning.
  Ways go_on(const Places& places, const Places* before, const Ways& ways) const;

  std::array<int64_t, 2 * kBuckets + 1> counts_{};
};

}  // namespace seqconv::internal
