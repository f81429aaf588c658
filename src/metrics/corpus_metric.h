#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/exact.h"
#include "metrics/rouge.h"
#include "metrics/sums.h"
#include "metrics/ter.h"

namespace seqconv::internal {

/// A metric of a corpus, fed sentence by sentence, as all sees it that reports
/// it or chooses by it. ROUGE has several measures, the others one. An object
/// belongs to one thread at a time.
class CorpusMetric {
 public:
  virtual ~CorpusMetric() = default;

  /// Appends the numbers of one sentence, whose sums make the scores (see
  /// SentenceStatistics), to `numbers`; adds nothing. Error without a
  /// reference. Several threads may count, each with a metric of its own.
  virtual void count(
      std::string_view hypothesis,
      const std::vector<std::string>& references,
      std::vector<double>& numbers) = 0;
  /// Adds a sentence by the numbers that count() has given, of a metric with
  /// the same options, for so many references.
  virtual void add_counted(std::span<const double> numbers, size_t references) = 0;
  /// Counts a sentence, adds it and gives its numbers.
  std::vector<double> add(std::string_view hypothesis, const std::vector<std::string>& references);

  virtual size_t measures() const { return 1; }
  /// As reports call a measure: "BLEU".
  virtual std::string name(size_t measure = 0) const = 0;
  /// In percent.
  virtual double score(size_t measure = 0) const = 0;
  /// The score of sums of add()'s numbers.
  virtual ScoreOfSums score_of_sums(size_t measure = 0) const = 0;
  /// Tells whether a larger score is a better one.
  virtual bool larger_is_better() const { return true; }
  /// Tells how the scores came about, so that they can be quoted.
  virtual std::string signature() const = 0;
  /// Names, signature, scores and what they are made of, in one line.
  virtual std::string report(int decimals = 2) const = 0;
};

std::unique_ptr<CorpusMetric> to_corpus_metric(Bleu metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(Chrf metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(Ter metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(ExactMatch metric);
/// Its measures from `first` on, of each the values that are named, one or
/// more.
std::unique_ptr<CorpusMetric> to_corpus_metric(
    Rouge metric, size_t first = 0, std::vector<RougeValue> values = {RougeValue::kF});

/// The metrics that may judge translations or summaries in one number.
enum class MetricKind { kBleu, kChrf, kTer, kRouge1, kRouge2, kRougeL, kExact };
template <>
struct EnumNames<MetricKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, MetricKind>>(
      {{"bleu", MetricKind::kBleu},
       {"chrf", MetricKind::kChrf},
       {"ter", MetricKind::kTer},
       {"rouge1", MetricKind::kRouge1},
       {"rouge2", MetricKind::kRouge2},
       {"rougeL", MetricKind::kRougeL},
       {"exact", MetricKind::kExact}});
};

/// The options of each of them.
struct MetricOptions {
  BleuOptions bleu{};
  ChrfOptions chrf{};
  TerOptions ter{};
  RougeOptions rouge{};
  ExactOptions exact{};

  template <class Visitor>
  void visit(Visitor& v) {
    v("bleu", bleu, "BLEU");
    v("chrf", chrf, "chrF");
    v("ter", ter, "TER");
    v("rouge", rouge, "ROUGE");
    v("exact", exact, "The share of equal lines");
  }

  /// UsageError for values out of range, for keys without effect, and for
  /// tokenizers that need a model.
  void validate(const std::string& path = "metrics") const;
};

/// Its first measure is the one that `kind` names. Both sides are lower-cased
/// first where `lowercase` is true, whatever the options say.
std::unique_ptr<CorpusMetric> make_metric(
    MetricKind kind, bool lowercase, const MetricOptions& options = {});

/// missing_words() of the metric that `kind` names.
std::string missing_words(
    const std::vector<std::string>& lines,
    MetricKind kind,
    const MetricOptions& options,
    const std::string& path = "metrics");

}  // namespace seqconv::internal
