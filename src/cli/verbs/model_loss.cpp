#include "cli/verbs/model_loss.h"

#include <cmath>
#include <numbers>

#include "pipeline/perplexity.h"
#include "pipeline/scorer.h"
#include "text/corpus/sentence_reader.h"

namespace seqconv::internal::verbs {
namespace {

constexpr int64_t kBatchTokens = 4096;

using Ids = std::vector<std::vector<int32_t>>;

/// The sentences of a file as ids. `limit`: the most tokens, </s> counted, 0 for any number;
/// `cut`: so many are left of a longer one, 0 for all.
Ids read_ids(const std::string& file, const TextPipeline& text, int64_t limit, int64_t cut) {
  SentenceReader sentences(file, text.vocabulary().size());
  Ids all;
  while (sentences.next()) {
    std::vector<int32_t> ids = encode_sentence(sentences, text);
    cut_tokens(ids, cut);
    SEQCONV_CHECK(
        limit == 0 || std::ssize(ids) < limit,
        sentences.where(),
        ": ",
        ids.size() + 1,
        " tokens, </s> counted, are more than the model's ",
        limit,
        " learned positions");
    all.push_back(std::move(ids));
  }
  return all;
}

}  // namespace

class ModelLoss::Measure {
 public:
  virtual ~Measure() = default;
  virtual double of(const RootedPath& model, const BackendOpener& opener) const = 0;
};

class ModelLoss::TranslationMeasure : public Measure {
 public:
  TranslationMeasure(const RootedPath& folder, const LossText& text, int64_t workers)
      : target_(text.target), workers_(workers) {
    const TranslationDescription model = read_translation_description(folder);
    const TranslationText& pipelines = model.text;
    sources_ = read_ids(
        text.source,
        *pipelines.source,
        model.options.learned_positions(model.options.encoder),
        pipelines.max_source_tokens);
    targets_ = read_ids(
        text.target,
        *pipelines.target,
        model.options.learned_positions(model.options.decoder),
        /*cut=*/0);
    SEQCONV_CHECK(
        sources_.size() == targets_.size(),
        "--valid-source and --valid-target must have as many lines, but ",
        text.source,
        " has ",
        sources_.size(),
        " and ",
        text.target,
        " has ",
        targets_.size());
    SEQCONV_CHECK(
        !targets_.empty(),
        text.target,
        ": text to compare models on was wanted, but the file is empty");
  }

  double of(const RootedPath& path, const BackendOpener& opener) const override {
    const TranslationSystem model = open_translation({path}, opener);
    const std::vector<double> scores =
        score_pairs(*model.backend, sources_, targets_, kBatchTokens, workers_);
    double total = 0;
    int64_t tokens = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      SEQCONV_CHECK(
          std::isfinite(scores[i]),
          target_,
          ":",
          i + 1,
          ": '",
          path.string(),
          "' gives the pair no finite probability");
      total += scores[i];
      tokens += std::ssize(targets_[i]) + 1;
    }
    return -total / (std::numbers::ln2 * static_cast<double>(tokens));
  }

 private:
  std::string target_;
  int64_t workers_;
  Ids sources_;
  Ids targets_;
};

class ModelLoss::LanguageMeasure : public Measure {
 public:
  LanguageMeasure(const RootedPath& folder, const LossText& text, int64_t workers)
      : file_(text.target), workers_(workers) {
    const LanguageDescription model = read_language_description(folder);
    ids_ = read_ids(text.target, *model.text.text, /*limit=*/0, /*cut=*/0);
    SEQCONV_CHECK(
        !ids_.empty(),
        text.target,
        ": text to compare models on was wanted, but the file is empty");
  }

  double of(const RootedPath& path, const BackendOpener& opener) const override {
    const LanguageSystem model = open_language_model(path, opener);
    PerplexityMeter meter(model, {.batch_tokens = kBatchTokens, .workers = workers_});
    for (size_t i = 0; i < ids_.size(); ++i)
      meter.add_ids(ids_[i], concat(file_, ":", i + 1));
    const TextCost cost = meter.finish();
    return cost.bits / static_cast<double>(cost.tokens);
  }

 private:
  std::string file_;
  int64_t workers_;
  Ids ids_;
};

ModelLoss::ModelLoss(const RootedPath& model, const LossText& text, int64_t workers) {
  const RootedPath folder = find_model(model).folder;
  const bool translates = task_of_model(folder) == Task::kTranslation;
  if (translates && text.source.empty())
    fail_usage(
        "a translation model is measured on --valid-source FILE and --valid-target FILE, but got "
        "--valid");
  if (!translates && !text.source.empty())
    fail_usage(
        "a language model is measured on --valid FILE, but got --valid-source and --valid-target");
  if (translates)
    measure_ = std::make_unique<TranslationMeasure>(folder, text, workers);
  else
    measure_ = std::make_unique<LanguageMeasure>(folder, text, workers);
}

ModelLoss::~ModelLoss() = default;

double ModelLoss::of(const RootedPath& model, const BackendOpener& opener) const {
  return measure_->of(model, opener);
}

}  // namespace seqconv::internal::verbs
