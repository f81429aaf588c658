#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_names.h"
#include "metrics/sums.h"

namespace seqconv::internal {

struct ChrfOptions {
  int64_t char_order = 6;
  int64_t word_order = 0;
  int64_t beta = 2;
  bool lowercase = false;
  bool whitespace = false;
  bool eps_smoothing = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("char_order", char_order, "Longest character n-gram, 1 to 6");
    v("word_order", word_order, "Longest word n-gram, 0 to 4; 2 is chrF++");
    v("beta", beta, "Weight of recall over precision, 1 to 100");
    v("lowercase", lowercase, "Lower-case both sides first");
    v("whitespace", whitespace, "Count white space as characters");
    v("eps_smoothing",
      eps_smoothing,
      R"(Mean of the F-scores of all orders, as chrF++.py has it, not F of the mean precision and recall of those that sentences are long enough for)");
  }

  /// UsageError for values out of range.
  void validate(const OptionNames& names = "chrf") const;
};

/// N-grams of one order.
struct ChrfCounts {
  int64_t hypothesis = 0;
  int64_t reference = 0;
  int64_t matched = 0;
};

/// Corpus chrF (Popovic 2015) and chrF++ (2017), fed sentence by sentence. The
/// numbers are sacreBLEU 2's. Each sentence takes, of several references, the
/// one with the best score of its own.
class Chrf {
 public:
  explicit Chrf(const ChrfOptions& options = {});

  /// The counts of one sentence, as statistics(). Error without a reference.
  /// May be called from several threads.
  std::vector<ChrfCounts> count(
      std::string_view hypothesis, const std::vector<std::string>& references) const;
  /// Adds one sentence and returns its counts. Error without a reference.
  std::vector<ChrfCounts> add(
      std::string_view hypothesis, const std::vector<std::string>& references);

  /// Adds a sentence that count() has counted with so many references.
  void add_counts(const std::vector<ChrfCounts>& counts, size_t references);

  /// One entry for each order: characters, then words.
  const std::vector<ChrfCounts>& statistics() const { return statistics_; }
  /// From 0 to 100.
  double score() const;
  /// "chrF2", "chrF2++", ...
  std::string name() const;
  /// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:seqconv-0.1.0".
  std::string signature() const;
  /// "chrF2|SIGNATURE = 58.55".
  std::string report(int decimals = 2) const;
  /// All counts, order by order, for significance tests.
  static std::vector<double> numbers(const std::vector<ChrfCounts>& counts);
  static std::vector<ChrfCounts> of_numbers(std::span<const double> numbers);
  /// The score of sums of numbers().
  ScoreOfSums score_of_sums() const;

 private:
  ChrfOptions options_;
  std::vector<ChrfCounts> statistics_;
  size_t references_ = 0;
};

/// chrF of a corpus; see corpus_bleu.
Chrf corpus_chrf(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const ChrfOptions& options = {});

}  // namespace seqconv::internal
