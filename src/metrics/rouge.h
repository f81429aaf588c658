#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/option_names.h"

namespace seqconv::internal {

/// Whose rules ROUGE follows.
enum class RougeStyle {
  kRouge155,    ///< ROUGE-1.5.5.pl with -a -m -n 2: what papers quote
  kRougeScore,  ///< Google's Python package rouge_score
};
template <>
struct EnumNames<RougeStyle> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, RougeStyle>>(
      {{"rouge-1.5.5", RougeStyle::kRouge155}, {"rouge_score", RougeStyle::kRougeScore}});
};

/// The words of ROUGE.
enum class RougeWords {
  kAscii,    ///< runs of ASCII letters and digits, as both programs have it
  kUnicode,  ///< runs of letters, marks and digits of any script; of those
             ///< without blanks between words, every character with its marks
};
template <>
struct EnumNames<RougeWords> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, RougeWords>>(
      {{"ascii", RougeWords::kAscii}, {"unicode", RougeWords::kUnicode}});
};

/// Says what several references of one summary come to in the style
/// rouge-1.5.5.
enum class RougeReferences {
  kAverage,    ///< -f A: counts of all references are added up
  kBest,       ///< -f B: the reference with the best recall, for each measure
  kJackknife,  ///< mean over all sets without one reference of the set's best
               ///< (Lin 2004); until version 1.3 the program did so itself
};
template <>
struct EnumNames<RougeReferences> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, RougeReferences>>(
      {{"average", RougeReferences::kAverage},
       {"best", RougeReferences::kBest},
       {"jackknife", RougeReferences::kJackknife}});
};

/// The numbers that are told of a measure, in the order of RougeValues.
enum class RougeValue { kRecall, kPrecision, kF };
template <>
struct EnumNames<RougeValue> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, RougeValue>>(
      {{"f", RougeValue::kF},
       {"recall", RougeValue::kRecall},
       {"precision", RougeValue::kPrecision}});
};

struct RougeOptions {
  RougeStyle style = RougeStyle::kRouge155;
  RougeWords tokenizer = RougeWords::kAscii;
  int64_t order = 2;
  bool stem = true;
  RougeReferences references = RougeReferences::kAverage;
  double alpha = 0.5;
  std::string exceptions;
  int64_t max_words = 0;  ///< 0: all
  int64_t max_bytes = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    v("style", style, "rouge-1.5.5 or rouge_score");
    v("tokenizer", tokenizer, "Words: ascii (the programs' own) or unicode, of all scripts");
    v("order", order, "Longest n-gram of ROUGE-N, 1 to 9");
    v("stem", stem, "Compare stems of words (-m, use_stemmer)");
    v("combine",
      references,
      R"(Several references: average (-f A), best (-f B) or jackknife (rouge-1.5.5 only))");
    v("alpha", alpha, "Weight of precision in F, 0 to 1 (-p, rouge-1.5.5 only)");
    v("exceptions",
      exceptions,
      "Folder of WordNet's lists of irregular forms, *.exc (rouge-1.5.5 only)");
    v("max_words", max_words, "Of both sides the first N words; 0 = all (-l, rouge-1.5.5 only)");
    v("max_bytes", max_bytes, "Of both sides the first N bytes; 0 = all (-b, rouge-1.5.5 only)");
  }

  /// UsageError for values out of range and for keys that the chosen style does
  /// not have.
  void validate(const OptionNames& names = "rouge") const;
};

/// One measure, each from 0 to 100.
struct RougeValues {
  double recall = 0;
  double precision = 0;
  double f = 0;
};

/// Sums over pairs, from which the means follow. Sums of them are the sums of
/// the pairs together.
struct RougeStatistics {
  std::vector<RougeValues> sums;  ///< in the order of Rouge::names()
  int64_t pairs = 0;

  RougeStatistics& operator+=(const RougeStatistics& other);
  /// All 0 without a pair.
  std::vector<RougeValues> means() const;
};

/// ROUGE (Lin 2004), fed summary by summary. Values of a pair are those of the
/// program or package that the style names: rouge-1.5.5 rounds them to five
/// decimals of 1 as the program does. The score is the plain mean of the
/// pairs', where the program takes the mean of random resamples.
///
/// A line feed ends a sentence. ROUGE-L of rouge-1.5.5 and ROUGE-Lsum of
/// rouge_score count, for several sentences, the union of the common
/// subsequences of a reference's sentence with all sentences of the summary;
/// ROUGE-L of rouge_score takes a text as one sentence.
class Rouge {
 public:
  /// Error when a list of irregular forms cannot be read.
  explicit Rouge(const RougeOptions& options = {});
  Rouge(Rouge&&) noexcept;
  Rouge& operator=(Rouge&&) noexcept;
  ~Rouge();

  /// The values of one summary, in the order of names(). Error without a
  /// reference.
  std::vector<RougeValues> compare(
      std::string_view hypothesis, const std::vector<std::string>& references);

  /// Adds one summary and returns its values, in the order of names(). Error
  /// without a reference.
  std::vector<RougeValues> add(
      std::string_view hypothesis, const std::vector<std::string>& references);

  /// Adds a summary by what compare() has given for so many references.
  void add_values(const std::vector<RougeValues>& values, size_t references);

  /// "ROUGE-1", "ROUGE-2", ..., "ROUGE-L", in the style rouge_score then
  /// "ROUGE-Lsum" too.
  const std::vector<std::string>& names() const { return names_; }
  const RougeStatistics& statistics() const { return statistics_; }
  /// In the order of names().
  std::vector<RougeValues> score() const { return statistics_.means(); }
  /// "nrefs:1|style:rouge-1.5.5|stem:porter|exceptions:none|refs:average|
  /// alpha:0.5|version:seqconv-0.1.0": exceptions:none where there is no folder
  /// of irregular forms, else their number and checksum;
  /// "nrefs:1|style:rouge_score|stem:porter|version:seqconv-0.1.0". Behind the
  /// style "|tok:unicode" and before the version "|words:100" or "|bytes:75"
  /// where the options say so.
  std::string signature() const;
  /// "ROUGE-1/ROUGE-2/ROUGE-L|SIGNATURE = F 31.27/11.07/25.23 R ... P ...".
  std::string report(int decimals = 2) const;

 private:
  class Comparison;

  RougeOptions options_;
  std::vector<std::string> names_;
  RougeStatistics statistics_;
  size_t references_ = 0;
  std::unique_ptr<Comparison> comparison_;
};

/// Tells whether ROUGE with these options takes more than half of the letters
/// of the lines for blanks, as the words of ASCII letters do those of other
/// scripts.
bool misses_most_letters(const std::vector<std::string>& lines, const RougeOptions& options);

/// ROUGE of a corpus; see corpus_bleu.
Rouge corpus_rouge(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const RougeOptions& options = {});

}  // namespace seqconv::internal
