#include "cli/evaluation.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <ostream>
#include <span>

#include "base/error.h"
#include "base/json_texts.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/threads.h"
#include "pipeline/workers.h"

namespace seqconv::internal::cli {
namespace {

/// What is known of one measure of one system.
using Measured = ComparedSystem;

/// All systems under one metric.
struct Evaluation {
  std::vector<std::unique_ptr<CorpusMetric>> metrics;  ///< [system]
  std::vector<std::vector<Measured>> measured;         ///< [measure][system]
  std::string signature;                               ///< with what was drawn
  std::vector<SentenceStatistics> statistics;          ///< [system]

  const CorpusMetric& metric() const { return *metrics[0]; }
};

std::string fixed(double value, int64_t decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(decimals), value);
  return text;
}

/// Counts the sentences of systems, some at a time, by threads that have
/// metrics of their own.
class SharedCount {
 public:
  SharedCount(const EvaluationText& text, const MakeMetric& make_metric, int64_t workers)
      : text_(text), make_metric_(make_metric), workers_(workers) {}

  /// Feeds a system's sentences to `metric`, and gives their numbers for tests.
  SentenceStatistics feed(CorpusMetric& metric, const EvaluationSystem& system) {
    const size_t count = system.lines.size();
    std::vector<std::vector<double>> numbers((count + kSentences - 1) / kSentences);
    const int64_t workers = std::min(workers_, static_cast<int64_t>(numbers.size()));
    share_work(numbers.size(), workers, [&](size_t part) {
      const size_t begin = part * kSentences;
      count_part(system, begin, std::min(count, begin + kSentences), numbers[part]);
    });
    SentenceStatistics statistics;
    for (size_t part = 0; part < numbers.size(); ++part)
      add_part(metric, system, part * kSentences, numbers[part], statistics);
    return statistics;
  }

 private:
  using Metric = std::unique_ptr<CorpusMetric>;
  static constexpr size_t kSentences = 64;  // at a time

  Metric borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        Metric metric = std::move(spare_.back());
        spare_.pop_back();
        return metric;
      }
    }
    return make_metric_();
  }

  void count_part(
      const EvaluationSystem& system, size_t begin, size_t end, std::vector<double>& numbers) {
    Metric metric = borrow();
    for (size_t i = begin; i < end; ++i)
      at_line(system, i, [&] { metric->count(system.lines[i], text_.references[i], numbers); });
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(metric));
  }

  void add_part(
      CorpusMetric& metric,
      const EvaluationSystem& system,
      size_t begin,
      const std::vector<double>& numbers,
      SentenceStatistics& statistics) const {
    const size_t end = std::min(begin + kSentences, system.lines.size());
    const size_t width = numbers.size() / (end - begin);
    for (size_t i = begin; i < end; ++i) {
      const std::span<const double> row(numbers.data() + (i - begin) * width, width);
      at_line(system, i, [&] { metric.add_counted(row, text_.references[i].size()); });
      statistics.add(row);
    }
  }

  template <class Function>
  static void at_line(const EvaluationSystem& system, size_t i, const Function& function) {
    located([&] { return concat(system.name, ":", system.numbers[i]); }, function);
  }

  const EvaluationText& text_;
  const MakeMetric& make_metric_;
  int64_t workers_;
  std::mutex mutex_;
  std::vector<Metric> spare_;
};

Resampling bootstrap(const EvaluationFlags& flags) {
  Resampling resampling{.seed = flags.seed};
  if (flags.samples > 0)
    resampling.samples = flags.samples;
  return resampling;
}

/// sacreBLEU's number of samples where none is given.
PairedTest paired_test(const EvaluationFlags& flags) {
  PairedTest test{.kind = *flags.paired, .resampling = bootstrap(flags)};
  if (flags.samples == 0 && test.kind == PairedTestKind::kRandomisation)
    test.resampling.samples = PairedTest{}.resampling.samples;
  if (flags.confidence)
    test.interval_samples = bootstrap(flags).samples;
  return test;
}

std::vector<Measured> measure(
    const EvaluationFlags& flags,
    const Evaluation& evaluation,
    const std::vector<SentenceStatistics>& statistics,
    size_t number) {
  const ScoreOfSums score = evaluation.metric().score_of_sums(number);
  std::vector<Measured> measured;
  if (flags.paired)
    measured = compare_systems(statistics, score, paired_test(flags));
  measured.resize(statistics.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    measured[i].score = evaluation.metrics[i]->score(number);
    if (flags.confidence && !measured[i].interval)
      measured[i].interval = bootstrap_interval(statistics[i], score, bootstrap(flags));
  }
  return measured;
}

std::string signature(const EvaluationFlags& flags, const CorpusMetric& metric) {
  if (flags.paired)
    return signature_with(metric.signature(), paired_test(flags));
  if (flags.confidence)
    return signature_with(metric.signature(), bootstrap(flags));
  return metric.signature();
}

Evaluation evaluation_of(
    const EvaluationFlags& flags, const EvaluationText& text, const MakeMetric& make_metric) {
  Evaluation evaluation;
  SharedCount counting(text, make_metric, thread_count(flags.threads));
  std::vector<SentenceStatistics>& statistics = evaluation.statistics;
  for (const EvaluationSystem& system : text.systems) {
    evaluation.metrics.push_back(make_metric());
    statistics.push_back(counting.feed(*evaluation.metrics.back(), system));
  }
  const size_t measures = flags.sentence ? 0 : evaluation.metric().measures();
  for (size_t i = 0; i < measures; ++i)
    evaluation.measured.push_back(measure(flags, evaluation, statistics, i));
  evaluation.signature = signature(flags, evaluation.metric());
  return evaluation;
}

/// "33.71 +- 1.20".
std::string interval_text(const ConfidenceInterval& interval, int64_t decimals) {
  return concat(fixed(interval.mean, decimals), " +- ", fixed(interval.half_width, decimals));
}

void write_single(const EvaluationFlags& flags, const Evaluation& evaluation, std::ostream& out) {
  const CorpusMetric& metric = evaluation.metric();
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << (i == 0 ? "" : " ") << fixed(evaluation.measured[i][0].score, flags.decimals);
  out << '\n' << metric.report(static_cast<int>(flags.decimals)) << '\n';
  if (!flags.confidence)
    return;
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << metric.name(i) << "|95%|" << evaluation.signature << " = "
        << interval_text(*evaluation.measured[i][0].interval, flags.decimals) << '\n';
}

void write_table(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const Evaluation& evaluation,
    std::ostream& out) {
  out << "system";
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << '\t' << evaluation.metric().name(i) << (flags.confidence ? "\t95 %" : "")
        << (flags.paired ? "\tp" : "");
  for (size_t s = 0; s < text.systems.size(); ++s) {
    out << '\n' << one_line(text.systems[s].name);
    for (const std::vector<Measured>& systems : evaluation.measured) {
      const Measured& own = systems[s];
      out << '\t' << fixed(own.score, flags.decimals);
      if (flags.confidence)
        out << '\t' << interval_text(*own.interval, flags.decimals);
      if (flags.paired)
        out << '\t' << (own.p_value ? fixed(*own.p_value, 4) : "baseline");
    }
  }
  out << "\nsignature\t" << evaluation.signature << '\n';
}

Json measured_object(const std::string& name, const Measured& own) {
  Json object = {{"name", name}, {"score", own.score}};
  if (own.interval)
    object["interval"] = {{"mean", own.interval->mean}, {"half_width", own.interval->half_width}};
  if (own.p_value)
    object["p_value"] = *own.p_value;
  return object;
}

/// One system of one measure is the object of that measure.
void write_json(const EvaluationText& text, const Evaluation& evaluation, std::ostream& out) {
  Json systems = Json::array();
  for (size_t s = 0; s < text.systems.size(); ++s) {
    Json scores = Json::array();
    for (size_t i = 0; i < evaluation.measured.size(); ++i)
      scores.push_back(measured_object(evaluation.metric().name(i), evaluation.measured[i][s]));
    systems.push_back({{"system", text.systems[s].name}, {"scores", std::move(scores)}});
  }
  Json object = {{"systems", systems}};
  if (systems.size() == 1)
    object = {{"scores", systems[0]["scores"]}};
  if (systems.size() == 1 && object["scores"].size() == 1)
    object = object["scores"][0];
  object["signature"] = evaluation.signature;
  out << json_line(object) << '\n';
}

/// The scores of one system's sentence, one a measure.
std::vector<double> sentence_scores(
    const std::vector<ScoreOfSums>& measures, const SentenceStatistics& system, size_t sentence) {
  std::vector<double> scores;
  for (const ScoreOfSums& measure : measures)
    scores.push_back(measure.exact(system.row(sentence)));
  return scores;
}

Json sentence_object(const CorpusMetric& metric, const std::vector<double>& scores) {
  if (scores.size() == 1)
    return {{"name", metric.name(0)}, {"score", scores[0]}};
  Json list = Json::array();
  for (size_t i = 0; i < scores.size(); ++i)
    list.push_back({{"name", metric.name(i)}, {"score", scores[i]}});
  return {{"scores", std::move(list)}};
}

/// A line of text has blanks between measures, tabs between systems.
void write_sentences(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const Evaluation& evaluation,
    std::ostream& out) {
  const CorpusMetric& metric = evaluation.metric();
  std::vector<ScoreOfSums> measures;
  for (size_t i = 0; i < metric.measures(); ++i)
    measures.push_back(metric.score_of_sums(i));
  log_info(metric.name(), "|", evaluation.signature);
  const bool several = text.systems.size() > 1;
  for (size_t line = 0; line < text.references.size(); ++line) {
    Json object = {{"line", text.systems[0].numbers[line]}};
    std::string row;
    for (size_t s = 0; s < text.systems.size(); ++s) {
      const auto scores = sentence_scores(measures, evaluation.statistics[s], line);
      for (size_t i = 0; i < scores.size(); ++i)
        row += concat(i > 0 ? " " : s > 0 ? "\t" : "", fixed(scores[i], flags.decimals));
      Json own = sentence_object(metric, scores);
      if (several) {
        own["system"] = text.systems[s].name;
        object["systems"].push_back(std::move(own));
      } else {
        object.update(own);
      }
    }
    out << (flags.format == OutputFormat::kJson ? json_line(object) : row) << '\n';
  }
}

}  // namespace

void evaluate(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const MakeMetric& make_metric,
    std::ostream& out) {
  const Evaluation evaluation = evaluation_of(flags, text, make_metric);
  if (flags.sentence)
    write_sentences(flags, text, evaluation, out);
  else if (flags.format == OutputFormat::kJson)
    write_json(text, evaluation, out);
  else if (text.systems.size() == 1)
    write_single(flags, evaluation, out);
  else
    write_table(flags, text, evaluation, out);
}

}  // namespace seqconv::internal::cli
