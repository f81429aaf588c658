#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/metrics/sums.h"

namespace seqconv {

struct ExactOptions {
  bool lowercase = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("lowercase", lowercase, "Lower-case both sides first");
  }

  /// Nothing can be wrong.
  void validate(const std::string& /*path*/ = "exact") const {}
};

/// The share of sentences that equal a reference of theirs, but for white space
/// at their ends.
class ExactMatch {
 public:
  explicit ExactMatch(const ExactOptions& options = {}) : options_(options) {}

  /// Whether one sentence does. Error without a reference.
  bool matches(
      std::string_view hypothesis,
      const std::vector<std::string>& references) const;
  /// Adds one sentence and returns whether it does. Error without a reference,
  /// or when their number differs from that of the sentences before.
  bool add(
      std::string_view hypothesis,
      const std::vector<std::string>& references);

  /// In percent; 0 without a sentence.
  double score() const;
  static std::string name() { return "EXACT"; }
  /// The score of sums of matches and sentences.
  static ScoreOfSums score_of_sums();
  /// "nrefs:1|case:mixed|version:seqconv-0.1.0".
  std::string signature() const;
  /// "EXACT|SIGNATURE = 61.20 (612 of 1000)".
  std::string report(int decimals = 2) const;

 private:
  ExactOptions options_;
  int64_t matched_ = 0;
  int64_t sentences_ = 0;
  size_t references_ = 0;
};

}  // namespace seqconv
