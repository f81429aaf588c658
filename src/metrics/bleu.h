#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/option_names.h"
#include "metrics/sums.h"
#include "metrics/tokenizers.h"

namespace seqconv::internal {

/// Whose rules BLEU follows.
enum class BleuStyle {
  kSacreBleu,  ///< sacreBLEU 2: tokenizer, smoothing, signature
  kMultiBleu,  ///< multi-bleu.perl: white space, no smoothing; a reference's
               ///< <unk> matches nothing, as fairseq-score has it
};
template <>
struct EnumNames<BleuStyle> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, BleuStyle>>(
      {{"sacrebleu", BleuStyle::kSacreBleu}, {"multi-bleu", BleuStyle::kMultiBleu}});
};

/// Says what to do about n-gram orders without a match.
enum class BleuSmoothing {
  kExp,    ///< 1/2, 1/4, ... of a match for the first, second, ... such order
  kFloor,  ///< so many matches as smoothing_value says
  kAddK,   ///< smoothing_value more matches and n-grams in all orders above 1
  kNone,   ///< BLEU is 0
};
template <>
struct EnumNames<BleuSmoothing> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, BleuSmoothing>>(
      {{"exp", BleuSmoothing::kExp},
       {"floor", BleuSmoothing::kFloor},
       {"add-k", BleuSmoothing::kAddK},
       {"none", BleuSmoothing::kNone}});
};

struct BleuOptions {
  BleuStyle style = BleuStyle::kSacreBleu;
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  /// Value of floor and add-k; kUsualValue: 0.1 and 1.
  double smoothing_value = kUsualValue;
  int64_t order = 4;
  bool effective_order = false;
  bool lowercase = false;
  bool compound_split = false;

  static constexpr double kUsualValue = -1;

  template <class Visitor>
  void visit(Visitor& v) {
    v("style", style, "sacrebleu or multi-bleu");
    v("tokenizer", tokenizer, "13a, none, intl, char, zh, spm or ja-mecab (sacrebleu only)");
    v("smoothing",
      smoothing,
      R"(N-gram orders without a match: exp, floor, add-k or none (sacrebleu only))");
    v("smoothing_value",
      smoothing_value,
      "What floor takes for no match, and add-k adds; -1 = 0.1 and 1");
    v("order", order, "Longest n-gram, 1 to 16 (sacrebleu only)");
    v("effective_order",
      effective_order,
      R"(Leave out orders that the hypotheses are too short for (sacrebleu only))");
    v("lowercase", lowercase, "Lower-case both sides first");
    v("compound_split", compound_split, "Set hyphens inside words apart (multi-bleu only)");
  }

  /// UsageError for values out of range and for keys that the chosen style or
  /// smoothing does not have.
  void validate(const OptionNames& names = "bleu") const;
};

/// Counts over sentences, from which BLEU follows. Sums of them are the counts
/// of the sentences together.
struct BleuStatistics {
  std::vector<int64_t> correct{};  ///< matched n-grams, clipped, for each n
  std::vector<int64_t> total{};    ///< n-grams of the hypotheses
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;  ///< of the reference nearest in length

  BleuStatistics& operator+=(const BleuStatistics& other);
  /// Lengths, correct and total, ten for order 4, for significance tests.
  std::vector<double> numbers() const;
  static BleuStatistics of_numbers(std::span<const double> numbers);
};

struct BleuScore {
  double score = 0;                  ///< 0 to 100
  std::vector<double> precisions{};  ///< percent, for each n
  double brevity_penalty = 0;
  double ratio = 0;  ///< hypothesis length / reference length
  BleuStatistics statistics;
};

/// Corpus BLEU (Papineni et al. 2002), fed sentence by sentence. The numbers
/// are those of sacreBLEU 2 or multi-bleu.perl with the same options.
class Bleu {
 public:
  /// `tokenizer` is for BleuTokenizer::kSpm and kJaMecab: UsageError where it
  /// is missing.
  explicit Bleu(const BleuOptions& options = {}, LineTokenizer tokenizer = {});

  /// The counts of one sentence. Error without a reference. May be called from
  /// several threads.
  BleuStatistics count(
      std::string_view hypothesis, const std::vector<std::string>& references) const;

  /// Adds one sentence and returns its counts. Error without a reference.
  BleuStatistics add(std::string_view hypothesis, const std::vector<std::string>& references);

  /// Adds a sentence that count() has counted with so many references.
  void add_counts(const BleuStatistics& counts, size_t references);

  const BleuStatistics& statistics() const { return statistics_; }
  BleuScore score() const;
  std::string name() const { return "BLEU"; }
  /// sacreBLEU's form: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:
  /// seqconv-0.1.0", "nrefs:var" where sentences have other numbers of
  /// references, and "|order:2" before the version where that is not 4; for
  /// multi-bleu with "style:multi-bleu" and "split:yes|no".
  std::string signature() const;
  /// sacreBLEU: "BLEU|SIGNATURE = 33.70 66.1/40.2/... (BP = ... ratio = ...
  /// hyp_len = ... ref_len = ...)"; multi-bleu: "BLEU4 = 22.44, p1/p2/p3/p4
  /// (BP=..., ratio=..., syslen=..., reflen=...)".
  std::string report(int decimals = 2) const;
  /// The score of sums of BleuStatistics::numbers().
  ScoreOfSums score_of_sums() const;

 private:
  BleuOptions options_;
  LineTokenizer tokenizer_;
  BleuStatistics statistics_;
  size_t references_ = 0;
};

/// unsegmented_language() of the lines where BLEU with these options splits
/// them at blanks, or where `zh` finds no words in what is not Chinese; else
/// "".
std::string_view language_without_words(
    const std::vector<std::string>& lines, const BleuOptions& options);

/// BLEU of given counts, as the options smooth them.
BleuScore compute_bleu(const BleuStatistics& statistics, const BleuOptions& options = {});

/// BLEU of a corpus. `references` holds one list of lines for each set of
/// references. Error with both counts when the numbers of lines differ.
Bleu corpus_bleu(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const BleuOptions& options = {},
    LineTokenizer tokenizer = {});

}  // namespace seqconv::internal
