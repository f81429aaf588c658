#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/base/enum_names.h"

namespace seqconv {

/// What translations or summaries of a corpus may be judged by.
enum class MetricKind { kBleu, kChrf, kRouge1, kRouge2, kRougeL };
template <>
struct EnumNames<MetricKind> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, MetricKind>>(
          {{"bleu", MetricKind::kBleu},
           {"chrf", MetricKind::kChrf},
           {"rouge1", MetricKind::kRouge1},
           {"rouge2", MetricKind::kRouge2},
           {"rougeL", MetricKind::kRougeL}});
};

/// A metric of a corpus, fed sentence by sentence, as all sees it that reports
/// it or chooses by it.
class CorpusMetric {
 public:
  virtual ~CorpusMetric() = default;

  /// Adds one sentence. Error without a reference, or when their number differs
  /// from that of the sentences before.
  virtual void add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) = 0;

  /// In percent.
  virtual double score() const = 0;
  /// Whether a larger score is a better one.
  virtual bool larger_is_better() const { return true; }
  /// As reports call it: "BLEU".
  virtual std::string name() const = 0;
  /// How the score came about, so that it can be quoted.
  virtual std::string signature() const = 0;
  /// Name, signature, score and what it is made of, in one line.
  virtual std::string report(int decimals = 2) const = 0;
};

/// A metric with its default options, but that both sides are lower-cased first
/// where `lowercase` is true. ROUGE is its F; it does not depend on case.
std::unique_ptr<CorpusMetric> make_metric(MetricKind kind, bool lowercase);

}  // namespace seqconv
