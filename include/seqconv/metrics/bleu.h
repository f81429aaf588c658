#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/base/enum_names.h"
#include "seqconv/base/option_names.h"
#include "seqconv/metrics/sums.h"
#include "seqconv/metrics/tokenizers.h"

namespace seqconv {

/// Whose rules BLEU follows.
enum class BleuStyle {
  kSacreBleu,  ///< sacreBLEU 2: tokenizer, smoothing, signature
  kMultiBleu,  ///< multi-bleu.perl: white space, no smoothing; a reference's
               ///< <unk> matches nothing, as fairseq-score has it
};
template <>
struct EnumNames<BleuStyle> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, BleuStyle>>(
          {{"sacrebleu", BleuStyle::kSacreBleu},
           {"multi-bleu", BleuStyle::kMultiBleu}});
};

/// What to do about n-gram orders without a match.
enum class BleuSmoothing {
  kExp,   ///< 1/2, 1/4, ... of a match for the first, second, ... such order
  kNone,  ///< BLEU is 0
};
template <>
struct EnumNames<BleuSmoothing> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, BleuSmoothing>>(
          {{"exp", BleuSmoothing::kExp}, {"none", BleuSmoothing::kNone}});
};

struct BleuOptions {
  BleuStyle style = BleuStyle::kSacreBleu;
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  bool lowercase = false;
  bool compound_split = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("style", style, "sacrebleu or multi-bleu");
    v("tokenizer",
      tokenizer,
      "13a, none, intl, char, zh, spm or ja-mecab (sacrebleu only)");
    v("smoothing", smoothing, "exp or none (sacrebleu only)");
    v("lowercase", lowercase, "Lower-case both sides first");
    v("compound_split",
      compound_split,
      "Set hyphens inside words apart (multi-bleu only)");
  }

  /// UsageError for keys that the chosen style does not have.
  void validate(const OptionNames& names = "bleu") const;
};

/// Counts over sentences, from which BLEU follows. Sums of them are the counts
/// of the sentences together.
struct BleuStatistics {
  static constexpr size_t kOrder = 4;
  std::array<int64_t, kOrder> correct{};  ///< matched n-grams, clipped
  std::array<int64_t, kOrder> total{};    ///< n-grams of the hypotheses
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;  ///< of the reference nearest in length

  BleuStatistics& operator+=(const BleuStatistics& other);
  /// Lengths, correct and total, ten in all, for significance tests.
  std::vector<double> numbers() const;
  static BleuStatistics of_numbers(std::span<const double> numbers);
};

struct BleuScore {
  double score = 0;                                         ///< 0 to 100
  std::array<double, BleuStatistics::kOrder> precisions{};  ///< percent
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
      std::string_view hypothesis,
      const std::vector<std::string>& references) const;

  /// Adds one sentence and returns its counts. Error without a reference, or
  /// when their number differs from that of the sentences before.
  BleuStatistics add(
      std::string_view hypothesis,
      const std::vector<std::string>& references);

  /// Adds a sentence that count() has counted with so many references. Error
  /// when that is another number of them than before.
  void add_counts(const BleuStatistics& counts, size_t references);

  const BleuStatistics& statistics() const { return statistics_; }
  BleuScore score() const;
  std::string name() const { return "BLEU"; }
  /// sacreBLEU's form: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:
  /// seqconv-0.1.0"; for multi-bleu with "style:multi-bleu" and "split:yes|no".
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
/// them at blanks; else "".
std::string_view language_without_words(
    const std::vector<std::string>& lines,
    const BleuOptions& options);

/// BLEU of given counts.
BleuScore compute_bleu(
    const BleuStatistics& statistics,
    BleuSmoothing smoothing);

/// BLEU of a corpus. `references` holds one list of lines for each set of
/// references. Error with both counts when the numbers of lines differ.
Bleu corpus_bleu(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const BleuOptions& options = {},
    LineTokenizer tokenizer = {});

}  // namespace seqconv
