#include "seqconv/metrics/corpus_metric.h"

#include "seqconv/base/error.h"

namespace seqconv {
namespace {

double percent(const BleuScore& score) {
  return score.score;
}
double percent(double score) {
  return score;
}

std::vector<double> numbers(const std::vector<ChrfCounts>& counts) {
  return Chrf::numbers(counts);
}
std::vector<double> numbers(bool match) {
  return {match ? 1.0 : 0.0, 1.0};
}
template <class Counts>
std::vector<double> numbers(const Counts& counts) {
  return counts.numbers();
}

/// Metrics with one measure, that have functions of these names.
template <class Metric>
class SingleMeasure : public CorpusMetric {
 public:
  explicit SingleMeasure(Metric metric) : metric_(std::move(metric)) {}

  std::vector<double> add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) override {
    return numbers(metric_.add(hypothesis, references));
  }
  std::string name(size_t) const override { return metric_.name(); }
  double score(size_t) const override { return percent(metric_.score()); }
  ScoreOfSums score_of_sums(size_t) const override {
    return metric_.score_of_sums();
  }
  bool larger_is_better() const override {
    return !std::is_same_v<Metric, Ter>;
  }
  std::string signature() const override { return metric_.signature(); }
  std::string report(int decimals) const override {
    return metric_.report(decimals);
  }

 private:
  Metric metric_;
};

/// F of ROUGE's measures, from one of them on.
class RougeMeasures : public CorpusMetric {
 public:
  RougeMeasures(Rouge rouge, size_t first)
      : rouge_(std::move(rouge)), first_(first) {}

  std::vector<double> add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) override {
    std::vector<double> row;
    for (const RougeValues& values : rouge_.add(hypothesis, references))
      row.push_back(values.f);
    row.push_back(1);
    return row;
  }
  size_t measures() const override { return rouge_.names().size() - first_; }
  std::string name(size_t measure) const override {
    return rouge_.names()[first_ + measure];
  }
  double score(size_t measure) const override {
    return rouge_.score()[first_ + measure].f;
  }
  ScoreOfSums score_of_sums(size_t measure) const override {
    const auto mean = [which = first_ + measure](std::span<const double> sums) {
      return sums[which] / sums.back();  // the last one counts summaries
    };
    return {.exact = mean, .single = {}};
  }
  std::string signature() const override { return rouge_.signature(); }
  std::string report(int decimals) const override {
    return rouge_.report(decimals);
  }

 private:
  Rouge rouge_;
  size_t first_;
};

template <class Metric>
std::unique_ptr<CorpusMetric> single(Metric metric) {
  return std::make_unique<SingleMeasure<Metric>>(std::move(metric));
}

}  // namespace

std::unique_ptr<CorpusMetric> to_corpus_metric(Bleu metric) {
  return single(std::move(metric));
}
std::unique_ptr<CorpusMetric> to_corpus_metric(Chrf metric) {
  return single(std::move(metric));
}
std::unique_ptr<CorpusMetric> to_corpus_metric(Ter metric) {
  return single(std::move(metric));
}
std::unique_ptr<CorpusMetric> to_corpus_metric(ExactMatch metric) {
  return single(std::move(metric));
}
std::unique_ptr<CorpusMetric> to_corpus_metric(Rouge metric, size_t first) {
  return std::make_unique<RougeMeasures>(std::move(metric), first);
}

std::unique_ptr<CorpusMetric> make_metric(MetricKind kind, bool lowercase) {
  switch (kind) {
    case MetricKind::kBleu:
      return to_corpus_metric(Bleu({.lowercase = lowercase}));
    case MetricKind::kChrf:
      return to_corpus_metric(Chrf({.lowercase = lowercase}));
    case MetricKind::kTer:
      return to_corpus_metric(Ter());
    case MetricKind::kRouge1:
      return to_corpus_metric(Rouge(), 0);
    case MetricKind::kRouge2:
      return to_corpus_metric(Rouge(), 1);
    case MetricKind::kRougeL:
      return to_corpus_metric(Rouge(), 2);
    case MetricKind::kExact:
      return to_corpus_metric(ExactMatch({.lowercase = lowercase}));
  }
  fail("unknown metric ", static_cast<int>(kind));
}

}  // namespace seqconv
