#include "seqconv/metrics/corpus_metric.h"

#include "seqconv/base/error.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"
#include "seqconv/metrics/rouge.h"

namespace seqconv {
namespace {

double number(const BleuScore& score) {
  return score.score;
}
double number(double score) {
  return score;
}

/// A metric with functions of these names.
template <class Metric>
class MetricOf : public CorpusMetric {
 public:
  explicit MetricOf(const Metric& metric) : metric_(metric) {}

  void add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) override {
    metric_.add(hypothesis, references);
  }
  double score() const override { return number(metric_.score()); }
  std::string name() const override { return metric_.name(); }
  std::string signature() const override { return metric_.signature(); }
  std::string report(int decimals) const override {
    return metric_.report(decimals);
  }

 private:
  Metric metric_;
};

/// F of one measure of ROUGE.
class RougeF : public CorpusMetric {
 public:
  explicit RougeF(size_t measure) : measure_(measure) {}

  void add(
      std::string_view hypothesis,
      const std::vector<std::string>& references) override {
    rouge_.add(hypothesis, references);
  }
  double score() const override { return rouge_.score()[measure_].f; }
  std::string name() const override { return rouge_.names()[measure_]; }
  std::string signature() const override { return rouge_.signature(); }
  std::string report(int decimals) const override {
    return rouge_.report(decimals);
  }

 private:
  Rouge rouge_;
  size_t measure_;
};

}  // namespace

std::unique_ptr<CorpusMetric> make_metric(MetricKind kind, bool lowercase) {
  switch (kind) {
    case MetricKind::kBleu:
      return std::make_unique<MetricOf<Bleu>>(Bleu({.lowercase = lowercase}));
    case MetricKind::kChrf:
      return std::make_unique<MetricOf<Chrf>>(Chrf({.lowercase = lowercase}));
    case MetricKind::kRouge1:
      return std::make_unique<RougeF>(0);
    case MetricKind::kRouge2:
      return std::make_unique<RougeF>(1);
    case MetricKind::kRougeL:
      return std::make_unique<RougeF>(2);
  }
  fail("unknown metric ", static_cast<int>(kind));
}

}  // namespace seqconv
