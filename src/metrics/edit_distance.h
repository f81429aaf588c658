#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal::metrics {

/// Which words stand for which when the hypothesis is made the reference.
struct Alignment {
  /// For each word of the reference the last word of the hypothesis that is
  /// used up with it; -1 before the first.
  std::vector<int64_t> of_reference;
  std::vector<char> reference_wrong;   ///< replaced or missing
  std::vector<char> hypothesis_wrong;  ///< replaced or too many
};

/// Edit distances to one reference from hypotheses of one length: one that is
/// kept, with all cells of its table, and others that begin as it does. Cells
/// further from the diagonal than the beam are not looked at, which makes the
/// distances of very different sentences larger than they are.
class EditDistance {
 public:
  /// The reference holds at least one word.
  EditDistance(size_t hypothesis_length, std::span<const uint32_t> reference);

  /// Keeps this hypothesis; its distance.
  int32_t keep(std::span<const uint32_t> words);
  /// The distance of `words`, whose first `equal` words are those of the kept
  /// hypothesis, or some number above `limit` when it is more than that.
  int32_t distance(std::span<const uint32_t> words, size_t equal, int32_t limit);
  /// Of the kept hypothesis. Where ways are equally short, words are replaced
  /// rather than deleted, and deleted rather than inserted.
  Alignment align(std::span<const uint32_t> words) const;

 private:
  /// Cells [begin, end) of a row of the table. cells[first] is the one left of
  /// them, which is far, and so are those right of them that the next row sees.
  struct Row {
    int64_t begin;
    int64_t end;
    int64_t margin;
    size_t first;
  };

  void lay_out(size_t hypothesis_length);
  /// Computes row i from the row above; its smallest cell.
  int32_t fill(size_t i, uint32_t word, const int32_t* above, int32_t* cells) const;
  int32_t last(const std::vector<int32_t>& cells) const;

  int64_t reference_length_;
  std::vector<uint32_t> reference_;  // from 1 on
  std::vector<Row> rows_;
  std::vector<int32_t> kept_;
  std::vector<int32_t> others_;
};

}  // namespace seqconv::internal::metrics
