#include "evaluation.h"

#include <cstdio>
#include <ostream>

#include "seqconv/base/error.h"
#include "seqconv/base/json.h"

namespace seqconv::cli {
namespace {

/// What is known of one measure of one system.
using Measured = ComparedSystem;

/// All systems under one metric.
struct Evaluation {
  std::vector<std::unique_ptr<CorpusMetric>> metrics;  ///< [system]
  std::vector<std::vector<Measured>> measured;         ///< [measure][system]
  std::string signature;                               ///< with what was drawn

  const CorpusMetric& metric() const { return *metrics[0]; }
};

std::string fixed(double value, int64_t decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(decimals), value);
  return text;
}

/// Feeds a system's lines to a metric; their numbers are those of the tests.
SentenceStatistics feed(
    CorpusMetric& metric,
    const EvaluationSystem& system,
    const EvaluationText& text) {
  SentenceStatistics statistics;
  for (size_t i = 0; i < system.lines.size(); ++i)
    located(
        [&] { return concat(system.name, ":", i + 1); },
        [&] {
          statistics.add(metric.add(system.lines[i], text.references[i]));
        });
  return statistics;
}

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
      measured[i].interval =
          bootstrap_interval(statistics[i], score, bootstrap(flags));
  }
  return measured;
}

std::string signature(
    const EvaluationFlags& flags,
    const CorpusMetric& metric) {
  if (flags.paired)
    return signature_with(metric.signature(), paired_test(flags));
  if (flags.confidence)
    return signature_with(metric.signature(), bootstrap(flags));
  return metric.signature();
}

Evaluation evaluation_of(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const std::function<std::unique_ptr<CorpusMetric>()>& make_metric) {
  Evaluation evaluation;
  std::vector<SentenceStatistics> statistics;
  for (const EvaluationSystem& system : text.systems) {
    evaluation.metrics.push_back(make_metric());
    statistics.push_back(feed(*evaluation.metrics.back(), system, text));
  }
  for (size_t i = 0; i < evaluation.metric().measures(); ++i)
    evaluation.measured.push_back(measure(flags, evaluation, statistics, i));
  evaluation.signature = signature(flags, evaluation.metric());
  return evaluation;
}

/// "33.71 +- 1.20".
std::string interval_text(
    const ConfidenceInterval& interval,
    int64_t decimals) {
  return concat(
      fixed(interval.mean, decimals),
      " +- ",
      fixed(interval.half_width, decimals));
}

void write_single(
    const EvaluationFlags& flags,
    const Evaluation& evaluation,
    std::ostream& out) {
  const CorpusMetric& metric = evaluation.metric();
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << (i == 0 ? "" : " ")
        << fixed(evaluation.measured[i][0].score, flags.decimals);
  out << '\n' << metric.report(static_cast<int>(flags.decimals)) << '\n';
  if (!flags.confidence)
    return;
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << metric.name(i) << "|95%|" << evaluation.signature << " = "
        << interval_text(*evaluation.measured[i][0].interval, flags.decimals)
        << '\n';
}

void write_table(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const Evaluation& evaluation,
    std::ostream& out) {
  out << "system";
  for (size_t i = 0; i < evaluation.measured.size(); ++i)
    out << '\t' << evaluation.metric().name(i)
        << (flags.confidence ? "\t95 %" : "") << (flags.paired ? "\tp" : "");
  for (size_t s = 0; s < text.systems.size(); ++s) {
    out << '\n' << text.systems[s].name;
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
    object["interval"] = {
        {"mean", own.interval->mean},
        {"half_width", own.interval->half_width}};
  if (own.p_value)
    object["p_value"] = *own.p_value;
  return object;
}

/// One system of one measure is the object of that measure.
void write_json(
    const EvaluationText& text,
    const Evaluation& evaluation,
    std::ostream& out) {
  Json systems = Json::array();
  for (size_t s = 0; s < text.systems.size(); ++s) {
    Json scores = Json::array();
    for (size_t i = 0; i < evaluation.measured.size(); ++i)
      scores.push_back(measured_object(
          evaluation.metric().name(i),
          evaluation.measured[i][s]));
    systems.push_back(
        {{"system", text.systems[s].name}, {"scores", std::move(scores)}});
  }
  Json object = {{"systems", systems}};
  if (systems.size() == 1)
    object = {{"scores", systems[0]["scores"]}};
  if (systems.size() == 1 && object["scores"].size() == 1)
    object = object["scores"][0];
  object["signature"] = evaluation.signature;
  out << object.dump() << '\n';
}

}  // namespace

void evaluate(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const std::function<std::unique_ptr<CorpusMetric>()>& make_metric,
    std::ostream& out) {
  const Evaluation evaluation = evaluation_of(flags, text, make_metric);
  if (flags.format == OutputFormat::kJson)
    write_json(text, evaluation, out);
  else if (text.systems.size() == 1)
    write_single(flags, evaluation, out);
  else
    write_table(flags, text, evaluation, out);
}

}  // namespace seqconv::cli
