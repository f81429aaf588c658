#include "seqconv/pipeline/translator.h"

#include "seqconv/base/log.h"
#include "token_batches.h"

namespace seqconv {
namespace {

void check_same_vocabulary(
    const Vocabulary& a,
    const Vocabulary& b,
    const char* side) {
  bool same = a.size() == b.size();
  for (int64_t i = 0; same && i < a.size(); ++i)
    same =
        a.symbol(static_cast<int32_t>(i)) == b.symbol(static_cast<int32_t>(i));
  SEQCONV_CHECK(
      same,
      "models of an ensemble must have the same ",
      side,
      " vocabulary, but they differ");
}

/// Most source ids, </s> counted, that every model can read; 0: no limit.
int64_t source_limit(const std::vector<LoadedModel>& models) {
  int64_t limit = 0;
  for (const LoadedModel& loaded : models) {
    if (loaded.options.positions != PositionKind::kLearned)
      continue;
    const int64_t own = loaded.options.max_positions;
    limit = limit == 0 ? own : std::min(limit, own);
  }
  return limit;
}

std::vector<TranslationModel> models_of(
    const std::vector<LoadedModel>& loaded) {
  std::vector<TranslationModel> models;
  for (const LoadedModel& model : loaded)
    models.push_back(model.model);
  return models;
}

Translation to_translation(
    const Hypothesis& hypothesis,
    const TextPipeline& target) {
  return {
      .text = target.decode(hypothesis.tokens),
      .tokens = target.symbols(hypothesis.tokens),
      .score = hypothesis.score,
      .log_probability = hypothesis.log_probability,
      .token_scores = hypothesis.token_scores};
}

}  // namespace

Translator::Translator(
    std::vector<LoadedModel> models,
    const TranslatorOptions& options)
    : models_(std::move(models)), options_(options) {
  SEQCONV_CHECK(!models_.empty(), "translating needs at least one model");
  options_.search.validate("search");
  for (const LoadedModel& loaded : models_) {
    check_same_vocabulary(
        models_[0].text.source->vocabulary(),
        loaded.text.source->vocabulary(),
        "source");
    check_same_vocabulary(
        models_[0].text.target->vocabulary(),
        loaded.text.target->vocabulary(),
        "target");
  }
}

std::vector<std::vector<Translation>> Translator::translate(
    const std::vector<TranslationRequest>& requests) const {
  const TextPipeline& source = *models_[0].text.source;
  const TextPipeline& target = *models_[0].text.target;
  const int64_t limit = source_limit(models_);
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> lengths;
  std::vector<size_t> request_of;  // the requests that are not empty
  std::vector<std::vector<Translation>> results(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    auto line =
        requests[i].ids ? *requests[i].ids : source.encode(requests[i].line);
    if (line.empty()) {
      results[i].emplace_back();
      continue;
    }
    const auto length = static_cast<int64_t>(line.size()) + 1;
    if (limit > 0 && length > limit) {
      log_warning(
          "a line of ",
          length,
          " tokens is cut to the model's ",
          limit,
          " positions");
      line.resize(static_cast<size_t>(limit) - 1);
    }
    lengths.push_back(static_cast<int64_t>(line.size()) + 1);
    ids.push_back(std::move(line));
    request_of.push_back(i);
  }
  const std::vector<TranslationModel> models = models_of(models_);
  for (const auto& group : group_by_tokens(lengths, options_.batch_tokens)) {
    std::vector<std::vector<int32_t>> rows;
    std::vector<SearchInput> inputs;
    for (size_t item : group) {
      rows.push_back(ids[item]);
      const std::string& prefix = requests[request_of[item]].target_prefix;
      inputs.push_back({lengths[item], target.encode(prefix)});
    }
    const Batch batch = make_batch(rows, {});
    const auto decoder = make_step_decoder(models, batch);
    const auto found = search(*decoder, inputs, options_.search);
    for (size_t row = 0; row < group.size(); ++row)
      for (const Hypothesis& hypothesis : found[row])
        results[request_of[group[row]]].push_back(
            to_translation(hypothesis, target));
  }
  return results;
}

}  // namespace seqconv
