#include "seqconv/metrics/corpus_metric.h"

#include "seqconv/base/error.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"

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

}  // namespace

std::unique_ptr<CorpusMetric> make_metric(MetricKind kind, bool lowercase) {
  switch (kind) {
    case MetricKind::kBleu:
      return std::make_unique<MetricOf<Bleu>>(Bleu({.lowercase = lowercase}));
    case MetricKind::kChrf:
      return std::make_unique<MetricOf<Chrf>>(Chrf({.lowercase = lowercase}));
  }
  fail("unknown metric ", static_cast<int>(kind));
}

}  // namespace seqconv
