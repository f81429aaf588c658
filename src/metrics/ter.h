#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_names.h"
#include "metrics/sums.h"

namespace seqconv::internal {

/// Says how lines become words before they are compared; the keys are
/// sacreBLEU's.
struct TerOptions {
  bool normalized = false;
  bool no_punct = false;
  bool asian_support = false;
  bool case_sensitive = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("normalized", normalized, "Set punctuation apart, read entities");
    v("no_punct", no_punct, "Remove punctuation");
    v("asian_support",
      asian_support,
      R"(Chinese characters are words where punctuation is set apart, and CJK punctuation is punctuation where that is removed)");
    v("case_sensitive", case_sensitive, "Do not lower-case both sides");
  }

  /// All values go together, as in sacreBLEU.
  void validate(const OptionNames& /*names*/ = "ter") const {}
  /// A note of what is set and has no effect: asian_support alone; "" for none.
  std::string idle_options(const OptionNames& names = "ter") const;
};

/// Counts over sentences, from which TER follows. Sums of them are the counts
/// of the sentences together.
struct TerStatistics {
  int64_t edits = 0;            ///< to the reference that wants the fewest
  double reference_length = 0;  ///< words, mean of all references

  TerStatistics& operator+=(const TerStatistics& other);
  /// The two, for significance tests.
  std::vector<double> numbers() const;
};

/// Corpus translation edit rate (Snover et al. 2006), fed sentence by sentence:
/// the words inserted, deleted, replaced and runs of words moved, of a hundred
/// words of the reference. Smaller is better. The numbers are sacreBLEU 2's.
class Ter {
 public:
  explicit Ter(const TerOptions& options = {});

  /// The counts of one sentence. Error without a reference. May be called from
  /// several threads.
  TerStatistics count(
      std::string_view hypothesis, const std::vector<std::string>& references) const;
  /// Adds one sentence and returns its counts. Error without a reference.
  TerStatistics add(std::string_view hypothesis, const std::vector<std::string>& references);

  /// Adds a sentence that count() has counted with so many references.
  void add_counts(const TerStatistics& counts, size_t references);

  const TerStatistics& statistics() const { return statistics_; }
  /// From 0 on; 100 where the references are empty and something was written.
  double score() const;
  static std::string name() { return "TER"; }
  /// sacreBLEU's form:
  /// "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:
  /// seqconv-0.1.0".
  std::string signature() const;
  /// "TER|SIGNATURE = 46.17".
  std::string report(int decimals = 2) const;
  /// The score of sums of TerStatistics::numbers().
  static ScoreOfSums score_of_sums();

 private:
  TerOptions options_;
  TerStatistics statistics_;
  size_t references_ = 0;
};

/// TER of a corpus; see corpus_bleu.
Ter corpus_ter(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const TerOptions& options = {});

}  // namespace seqconv::internal
