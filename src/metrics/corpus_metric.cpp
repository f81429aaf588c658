#include "metrics/corpus_metric.h"

#include <algorithm>

#include "base/error.h"
#include "metrics/missing_words.h"

namespace seqconv::internal {
namespace {

double percent(const BleuScore& score) {
  return score.score;
}
double percent(double score) {
  return score;
}

template <class Counts>
std::vector<double> to_numbers(const Counts& counts) {
  return counts.numbers();
}
std::vector<double> to_numbers(const std::vector<ChrfCounts>& counts) {
  return Chrf::numbers(counts);
}

BleuStatistics to_counts(std::span<const double> numbers, const Bleu&) {
  return BleuStatistics::of_numbers(numbers);
}
std::vector<ChrfCounts> to_counts(std::span<const double> numbers, const Chrf&) {
  return Chrf::of_numbers(numbers);
}
TerStatistics to_counts(std::span<const double> numbers, const Ter&) {
  return {static_cast<int64_t>(numbers[0]), numbers[1]};
}
ExactStatistics to_counts(std::span<const double> numbers, const ExactMatch&) {
  return {static_cast<int64_t>(numbers[0]), static_cast<int64_t>(numbers[1])};
}

/// Metrics with one measure, that have functions of these names.
template <class Metric>
class SingleMeasure : public CorpusMetric {
 public:
  explicit SingleMeasure(Metric metric) : metric_(std::move(metric)) {}

  void count(
      std::string_view hypothesis,
      const std::vector<std::string>& references,
      std::vector<double>& numbers) override {
    const std::vector<double> own = to_numbers(metric_.count(hypothesis, references));
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  void add_counted(std::span<const double> numbers, size_t references) override {
    metric_.add_counts(to_counts(numbers, metric_), references);
  }
  std::string name(size_t) const override { return metric_.name(); }
  double score(size_t) const override { return percent(metric_.score()); }
  ScoreOfSums score_of_sums(size_t) const override { return metric_.score_of_sums(); }
  bool larger_is_better() const override { return !std::is_same_v<Metric, Ter>; }
  std::string signature() const override { return metric_.signature(); }
  std::string report(int decimals) const override { return metric_.report(decimals); }

 private:
  Metric metric_;
};

/// ROUGE's measures from one of them on, of each some values. A sentence's
/// numbers are all values of all measures, and 1.
class RougeMeasures : public CorpusMetric {
 public:
  RougeMeasures(Rouge rouge, size_t first, std::vector<RougeValue> values)
      : rouge_(std::move(rouge)), first_(first), values_(std::move(values)) {}

  void count(
      std::string_view hypothesis,
      const std::vector<std::string>& references,
      std::vector<double>& numbers) override {
    for (const RougeValues& own : rouge_.compare(hypothesis, references))
      numbers.insert(numbers.end(), {own.recall, own.precision, own.f});
    numbers.push_back(1);
  }
  void add_counted(std::span<const double> numbers, size_t references) override {
    std::vector<RougeValues> values;
    for (size_t i = 0; i + 2 < numbers.size(); i += 3)
      values.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    rouge_.add_values(values, references);
  }
  size_t measures() const override { return (rouge_.names().size() - first_) * values_.size(); }
  std::string name(size_t measure) const override {
    const char* const kinds[] = {" R", " P", ""};
    return rouge_.names()[place(measure)] + kinds[value(measure)];
  }
  double score(size_t measure) const override {
    const RougeValues own = rouge_.score()[place(measure)];
    const double values[] = {own.recall, own.precision, own.f};
    return values[value(measure)];
  }
  ScoreOfSums score_of_sums(size_t measure) const override {
    const size_t which = 3 * place(measure) + value(measure);
    const auto mean = [which](std::span<const double> sums) {
      return sums[which] / sums.back();  // the last one counts summaries
    };
    return {.exact = mean, .single = {}};
  }
  std::string signature() const override { return rouge_.signature(); }
  std::string report(int decimals) const override { return rouge_.report(decimals); }

 private:
  size_t place(size_t measure) const { return first_ + measure / values_.size(); }
  size_t value(size_t measure) const {
    return static_cast<size_t>(values_[measure % values_.size()]);
  }

  Rouge rouge_;
  size_t first_;
  std::vector<RougeValue> values_;
};

template <class Metric>
std::unique_ptr<CorpusMetric> single(Metric metric) {
  return std::make_unique<SingleMeasure<Metric>>(std::move(metric));
}

}  // namespace

std::vector<double> CorpusMetric::add(
    std::string_view hypothesis, const std::vector<std::string>& references) {
  std::vector<double> numbers;
  count(hypothesis, references, numbers);
  add_counted(numbers, references.size());
  return numbers;
}

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
std::unique_ptr<CorpusMetric> to_corpus_metric(
    Rouge metric, size_t first, std::vector<RougeValue> values) {
  return std::make_unique<RougeMeasures>(std::move(metric), first, std::move(values));
}

void MetricOptions::validate(const std::string& path) const {
  bleu.validate(path + ".bleu");
  chrf.validate(path + ".chrf");
  ter.validate(path + ".ter");
  rouge.validate(path + ".rouge");
  exact.validate(path + ".exact");
  if (bleu.tokenizer == BleuTokenizer::kSpm || bleu.tokenizer == BleuTokenizer::kJaMecab)
    fail_usage(
        path,
        ".bleu.tokenizer = '",
        enum_name(bleu.tokenizer),
        "' needs a model, which `seqconv evaluate bleu` takes; here it must be 13a, none, intl, "
        "char or zh");
}

std::unique_ptr<CorpusMetric> make_metric(
    MetricKind kind, bool lowercase, const MetricOptions& options) {
  MetricOptions own = options;
  own.bleu.lowercase |= lowercase;
  own.chrf.lowercase |= lowercase;
  own.exact.lowercase |= lowercase;
  own.rouge.order = std::max<int64_t>(own.rouge.order, 2);
  switch (kind) {
    case MetricKind::kBleu:
      return to_corpus_metric(Bleu(own.bleu));
    case MetricKind::kChrf:
      return to_corpus_metric(Chrf(own.chrf));
    case MetricKind::kTer:
      return to_corpus_metric(Ter(own.ter));
    case MetricKind::kRouge1:
      return to_corpus_metric(Rouge(own.rouge), 0);
    case MetricKind::kRouge2:
      return to_corpus_metric(Rouge(own.rouge), 1);
    case MetricKind::kRougeL:
      return to_corpus_metric(Rouge(own.rouge), static_cast<size_t>(own.rouge.order));
    case MetricKind::kExact:
      return to_corpus_metric(ExactMatch(own.exact));
  }
  fail("unknown metric ", static_cast<int>(kind));
}

std::string missing_words(
    const std::vector<std::string>& lines,
    MetricKind kind,
    const MetricOptions& options,
    const std::string& path) {
  const auto of = [&](const auto& own, const char* name) {
    return missing_words(lines, own, {"the validation text is", {concat(path, ".", name)}});
  };
  switch (kind) {
    case MetricKind::kBleu:
      return of(options.bleu, "bleu");
    case MetricKind::kChrf:
      return of(options.chrf, "chrf");
    case MetricKind::kTer:
      return of(options.ter, "ter");
    case MetricKind::kRouge1:
    case MetricKind::kRouge2:
    case MetricKind::kRougeL:
      return of(options.rouge, "rouge");
    case MetricKind::kExact:
      return of(options.exact, "exact");
  }
  fail("unknown metric ", static_cast<int>(kind));
}

}  // namespace seqconv::internal
