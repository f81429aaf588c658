#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_names.h"
#include "metrics/sums.h"

namespace seqconv::internal {

struct ExactOptions {
  bool lowercase = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("lowercase", lowercase, "Lower-case both sides first");
  }

  /// Nothing can be wrong.
  void validate(const OptionNames& /*names*/ = "exact") const {}
};

/// Counts over sentences. Sums of them are the counts of the sentences
/// together.
struct ExactStatistics {
  int64_t matched = 0;
  int64_t sentences = 0;

  /// The two, for significance tests.
  std::vector<double> numbers() const;
};

/// The share of sentences that equal a reference of theirs, but for white space
/// at their ends.
class ExactMatch {
 public:
  explicit ExactMatch(const ExactOptions& options = {}) : options_(options) {}

  /// The counts of one sentence. Error without a reference. May be called from
  /// several threads.
  ExactStatistics count(
      std::string_view hypothesis, const std::vector<std::string>& references) const;
  /// Adds a sentence that count() has counted with so many references.
  void add_counts(const ExactStatistics& counts, size_t references);

  /// In percent; 0 without a sentence.
  double score() const;
  static std::string name() { return "EXACT"; }
  /// The score of sums of ExactStatistics::numbers().
  static ScoreOfSums score_of_sums();
  /// "nrefs:1|case:mixed|version:seqconv-0.1.0".
  std::string signature() const;
  /// "EXACT|SIGNATURE = 61.20 (612 of 1000)".
  std::string report(int decimals = 2) const;

 private:
  ExactOptions options_;
  ExactStatistics statistics_;
  size_t references_ = 0;
};

}  // namespace seqconv::internal
