#pragma once

#include <functional>
#include <span>

namespace seqconv::internal {

/// A score of a sample that significance tests draw.
struct SampleScore {
  double score = 0;
  bool single = false;  ///< whether it is a number of single precision
};

/// Says how a metric makes a corpus's score of sums over its sentences.
struct ScoreOfSums {
  /// In double precision, as of a whole corpus.
  std::function<double(std::span<const double>)> exact;
  /// The score of sums in single precision, computed with single precision
  /// where sacreBLEU with NumPy 2 has it; where it is empty, by `exact`.
  std::function<SampleScore(std::span<const float>)> single;
};

}  // namespace seqconv::internal
