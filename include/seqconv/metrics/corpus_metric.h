#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/base/enum_names.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"
#include "seqconv/metrics/exact.h"
#include "seqconv/metrics/rouge.h"
#include "seqconv/metrics/sums.h"
#include "seqconv/metrics/ter.h"

namespace seqconv {

/// A metric of a corpus, fed sentence by sentence, as all sees it that reports
/// it or chooses by it. ROUGE has several measures, the others one.
class CorpusMetric {
 public:
  virtual ~CorpusMetric() = default;

  /// Adds one sentence and gives its numbers, whose sums make the scores (see
  /// SentenceStatistics). Error without a reference, or when their number
  /// differs from that of the sentences before.
  virtual std::vector<double> add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) = 0;

  virtual size_t measures() const { return 1; }
  /// As reports call a measure: "BLEU".
  virtual std::string name(size_t measure = 0) const = 0;
  /// In percent.
  virtual double score(size_t measure = 0) const = 0;
  /// The score of sums of add()'s numbers.
  virtual ScoreOfSums score_of_sums(size_t measure = 0) const = 0;
  /// Whether a larger score is a better one.
  virtual bool larger_is_better() const { return true; }
  /// How the scores came about, so that they can be quoted.
  virtual std::string signature() const = 0;
  /// Names, signature, scores and what they are made of, in one line.
  virtual std::string report(int decimals = 2) const = 0;
};

std::unique_ptr<CorpusMetric> to_corpus_metric(Bleu metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(Chrf metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(Ter metric);
std::unique_ptr<CorpusMetric> to_corpus_metric(ExactMatch metric);
/// F of its measures from `first` on.
std::unique_ptr<CorpusMetric> to_corpus_metric(Rouge metric, size_t first = 0);

/// What translations or summaries may be judged by in one number.
enum class MetricKind { kBleu, kChrf, kTer, kRouge1, kRouge2, kRougeL, kExact };
template <>
struct EnumNames<MetricKind> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, MetricKind>>(
          {{"bleu", MetricKind::kBleu},
           {"chrf", MetricKind::kChrf},
           {"ter", MetricKind::kTer},
           {"rouge1", MetricKind::kRouge1},
           {"rouge2", MetricKind::kRouge2},
           {"rougeL", MetricKind::kRougeL},
           {"exact", MetricKind::kExact}});
};

/// Its first measure is the one that `kind` names. Options are the defaults,
/// but that both sides are lower-cased first where `lowercase` is true; ROUGE
/// and TER do not depend on case.
std::unique_ptr<CorpusMetric> make_metric(MetricKind kind, bool lowercase);

}  // namespace seqconv
