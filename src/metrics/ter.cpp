#include "metrics/ter.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "metrics/edit_rate.h"
#include "metrics/report.h"
#include "metrics/tercom_words.h"
#include "metrics/word_numbers.h"

namespace seqconv::internal {
namespace {

/// 100 edits / length, in the precision of its arguments.
template <class Real>
Real edit_rate(Real edits, Real length) {
  if (length > 0)
    return 100 * (edits / length);
  return edits > 0 ? Real(100) : Real(0);
}

const char* yes_or_no(bool value) {
  return value ? "yes" : "no";
}

}  // namespace

std::string TerOptions::idle_options(const OptionNames& names) const {
  if (!asian_support || normalized || no_punct)
    return "";
  return concat(
      names("asian_support"),
      " has no effect without ",
      names("normalized"),
      " or ",
      names("no_punct"));
}

TerStatistics& TerStatistics::operator+=(const TerStatistics& other) {
  edits += other.edits;
  reference_length += other.reference_length;
  return *this;
}

std::vector<double> TerStatistics::numbers() const {
  return {static_cast<double>(edits), reference_length};
}

Ter::Ter(const TerOptions& options) : options_(options) {}

TerStatistics Ter::count(
    std::string_view hypothesis, const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  metrics::WordNumbers numbers;
  const std::vector<uint32_t> words =
      numbers.of_text(metrics::space_tercom_words(hypothesis, options_));
  TerStatistics statistics;
  statistics.edits = std::numeric_limits<int64_t>::max();
  int64_t length = 0;
  for (const std::string& line : references) {
    std::string text = metrics::space_tercom_words(line, options_);
    // sacreBLEU normalises references twice, which splits "'s." again where
    // punctuation is removed.
    if (options_.normalized)
      text = metrics::space_tercom_words(text, options_);
    const std::vector<uint32_t> reference = numbers.of_text(std::move(text));
    length += static_cast<int64_t>(reference.size());
    statistics.edits = std::min(statistics.edits, metrics::count_edits(words, reference));
  }
  statistics.reference_length =
      static_cast<double>(length) / static_cast<double>(references.size());
  return statistics;
}

TerStatistics Ter::add(std::string_view hypothesis, const std::vector<std::string>& references) {
  const TerStatistics counts = count(hypothesis, references);
  add_counts(counts, references.size());
  return counts;
}

void Ter::add_counts(const TerStatistics& counts, size_t references) {
  metrics::check_references(references, references_);
  statistics_ += counts;
}

double Ter::score() const {
  return edit_rate(static_cast<double>(statistics_.edits), statistics_.reference_length);
}

std::string Ter::signature() const {
  return concat(
      concat("nrefs:", metrics::references_text(references_), "|case:"),
      options_.case_sensitive ? "mixed" : "lc",
      "|tok:tercom|norm:",
      yes_or_no(options_.normalized),
      "|punct:",
      yes_or_no(!options_.no_punct),
      "|asian:",
      yes_or_no(options_.asian_support),
      "|",
      metrics::kVersionTag);
}

std::string Ter::report(int decimals) const {
  return concat("TER|", signature(), " = ", metrics::fixed(score(), decimals));
}

ScoreOfSums Ter::score_of_sums() {
  return {
      .exact = [](std::span<const double> sums) { return edit_rate(sums[0], sums[1]); },
      .single =
          [](std::span<const float> sums) {
            return SampleScore{edit_rate(sums[0], sums[1]), sums[1] > 0};
          }};
}

Ter corpus_ter(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const TerOptions& options) {
  Ter ter(options);
  metrics::add_corpus(ter, hypotheses, references);
  return ter;
}

}  // namespace seqconv::internal
