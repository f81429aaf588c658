#include "base/json.h"
#include "base/options.h"
#include "metrics/corpus_metric.h"
#include "runtime/api/arguments.h"

/// Scores of corpora.
namespace seqconv::internal {
namespace {

template <class Metric, class Options>
std::unique_ptr<CorpusMetric> make(const Json& given, const char* name) {
  Options options;
  read_options(given, name, options);
  options.validate(name);
  return to_corpus_metric(Metric(options));
}

std::unique_ptr<CorpusMetric> metric_of(std::string_view name, const Json& options) {
  if (name == "bleu")
    return make<Bleu, BleuOptions>(options, "bleu");
  if (name == "chrf")
    return make<Chrf, ChrfOptions>(options, "chrf");
  if (name == "ter")
    return make<Ter, TerOptions>(options, "ter");
  if (name == "rouge")
    return make<Rouge, RougeOptions>(options, "rouge");
  if (name == "exact")
    return make<ExactMatch, ExactOptions>(options, "exact");
  fail_option("metric must be 'bleu', 'chrf', 'ter', 'rouge' or 'exact', but got '", name, "'");
}

Json read_json(const char* options) {
  if (options == nullptr)
    return Json::object();
  // Options are flat: what lies deeper is not read.
  bool is_flat = true;
  const auto keep = [&](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
    is_flat = is_flat && depth <= 2;
    return depth <= 2;
  };
  const Json table = Json::parse(options, keep, /*allow_exceptions=*/false);
  if (!is_flat || !table.is_object())
    fail_option("options must be a JSON object of plain values, but got '", options, "'");
  return table;
}

/// Scores with what they point to. C sees their base.
class OwnedScores : public seqconv_scores {
 public:
  explicit OwnedScores(const CorpusMetric& metric)
      : seqconv_scores{}, own_signature_(metric.signature()), own_report_(metric.report()) {
    for (size_t i = 0; i < metric.measures(); ++i) {
      own_names_.push_back(metric.name(i));
      own_values_.push_back(metric.score(i));
    }
    for (const std::string& name : own_names_)
      own_texts_.push_back({name.c_str(), std::ssize(name)});
    seqconv_scores::size = sizeof(seqconv_scores);
    seqconv_scores::count = std::ssize(own_values_);
    seqconv_scores::names = own_texts_.data();
    seqconv_scores::values = own_values_.data();
    seqconv_scores::signature = {own_signature_.c_str(), std::ssize(own_signature_)};
    seqconv_scores::report = {own_report_.c_str(), std::ssize(own_report_)};
  }

 private:
  std::vector<std::string> own_names_;
  std::vector<seqconv_text> own_texts_;
  std::vector<double> own_values_;
  std::string own_signature_, own_report_;
};

}  // namespace
}  // namespace seqconv::internal

namespace api = seqconv::internal;

extern "C" {

seqconv_status seqconv_evaluate(
    const char* metric,
    const seqconv_text* hypotheses,
    const seqconv_text* references,
    int64_t count,
    int64_t each,
    const char* options,
    seqconv_scores** scores) {
  return api::guarded(SEQCONV_OPTION_ERROR, [&] {
    seqconv_scores*& place = api::required(scores, "scores");
    const auto own = api::metric_of(&api::required(metric, "metric"), api::read_json(options));
    if (count < 1 || each < 1)
      api::fail_option(
          "a corpus must have hypotheses with references, but got ",
          count,
          " with ",
          each,
          " each");
    api::required(hypotheses, "hypotheses");
    api::required(references, "references");
    for (int64_t i = 0; i < count; ++i)
      own->add(
          api::read_text(hypotheses[i], "a hypothesis"),
          api::read_texts(references + i * each, each, "references"));
    place = std::make_unique<api::OwnedScores>(*own).release();
  });
}

void seqconv_scores_free(seqconv_scores* scores) {
  delete static_cast<api::OwnedScores*>(scores);
}

}  // extern "C"
