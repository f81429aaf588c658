#include "seqconv/pipeline/translator.h"

#include <limits>

#include "seqconv/base/log.h"
#include "token_batches.h"

namespace seqconv {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();  // of steps

/// Most tokens of a side, </s> counted, for which every model has learned
/// positions; 0: no limit.
int64_t least_positions(
    const std::vector<LoadedModel>& models,
    StackOptions ModelOptions::*side) {
  int64_t limit = 0;
  for (const LoadedModel& loaded : models) {
    const ModelOptions& options = loaded.options;
    const int64_t own = options.learned_positions(options.*side);
    if (own > 0)
      limit = limit == 0 ? own : std::min(limit, own);
  }
  return limit;
}

/// How a message about a request begins.
std::string place_of(const TranslationRequest& request) {
  return request.where.empty() ? "" : request.where + ": ";
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
    : models_(std::move(models)),
      options_(options),
      source_positions_(least_positions(models_, &ModelOptions::encoder)),
      target_positions_(least_positions(models_, &ModelOptions::decoder)) {
  SEQCONV_CHECK(!models_.empty(), "translating needs at least one model");
  options_.search.validate("search");
  for (const LoadedModel& loaded : models_) {
    const std::string found = difference(models_[0].text, loaded.text);
    if (!found.empty())
      fail_other_text(
          models_[0].folder,
          loaded.folder,
          "models of an ensemble",
          found);
  }
}

std::vector<int32_t> Translator::source_ids(
    const TranslationRequest& request) const {
  std::vector<int32_t> ids =
      request.ids ? *request.ids : models_[0].text.source->encode(request.line);
  const auto length = std::ssize(ids) + 1;
  if (source_positions_ > 0 && length > source_positions_) {
    log_warning(
        place_of(request),
        "a line of ",
        length,
        " tokens is cut to the model's ",
        source_positions_,
        " positions");
    ids.resize(static_cast<size_t>(source_positions_) - 1);
  }
  return ids;
}

SearchInput Translator::search_input(
    const TranslationRequest& request,
    int64_t source_length) const {
  SearchInput input{
      source_length,
      models_[0].text.target->encode(request.target_prefix)};
  const int64_t steps = target_positions_ > 0 ? target_positions_ : kNoLimit;
  const int64_t most = maximum_length(options_.search, source_length, steps);
  if (std::ssize(input.prefix) > most) {
    log_warning(
        place_of(request),
        "a target prefix of ",
        input.prefix.size(),
        " tokens is cut to the ",
        most,
        " that ",
        most == steps - 1 ? "the model's learned positions"
                          : "max_length_a and max_length_b",
        " allow");
    input.prefix.resize(static_cast<size_t>(most));
  }
  return input;
}

/// Says where learned positions, not the options, may have cut a translation.
void Translator::warn_if_cut(
    const TranslationRequest& request,
    const SearchInput& input,
    const Hypothesis& best) const {
  if (target_positions_ == 0 || std::ssize(best.tokens) < target_positions_ ||
      maximum_length(options_.search, input.source_length, kNoLimit) <
          target_positions_)
    return;
  log_warning(
      place_of(request),
      "the translation may be cut: it reaches the end of the model's ",
      target_positions_,
      " positions");
}

void Translator::translate_group(
    const std::vector<TranslationRequest>& requests,
    const std::vector<Sentence>& sentences,
    const std::vector<size_t>& group,
    std::vector<std::vector<Translation>>& results) const {
  std::vector<std::vector<int32_t>> rows;
  std::vector<SearchInput> inputs;
  for (const size_t item : group) {
    rows.push_back(sentences[item].source);
    inputs.push_back(sentences[item].input);
  }
  const TextPipeline& target = *models_[0].text.target;
  const auto decoder =
      make_step_decoder(models_of(models_), make_batch(rows, {}));
  const auto found =
      search(*decoder, inputs, options_.search, target.vocabulary().padding());
  for (size_t row = 0; row < group.size(); ++row) {
    const Sentence& sentence = sentences[group[row]];
    warn_if_cut(requests[sentence.request], sentence.input, found[row].front());
    for (const Hypothesis& hypothesis : found[row])
      results[sentence.request].push_back(to_translation(hypothesis, target));
  }
}

std::vector<std::vector<Translation>> Translator::translate(
    const std::vector<TranslationRequest>& requests,
    SymbolCount* count) const {
  std::vector<std::vector<Translation>> results(requests.size());
  std::vector<Sentence> sentences;  // the requests that are not empty
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<int32_t> source = source_ids(requests[i]);
    if (count != nullptr)
      *count += SymbolCount::of(source);
    if (source.empty()) {
      results[i].emplace_back();
      continue;
    }
    lengths.push_back(std::ssize(source) + 1);
    SearchInput input = search_input(requests[i], lengths.back());
    sentences.push_back({i, std::move(source), std::move(input)});
  }
  for (const auto& group : group_by_tokens(lengths, options_.batch_tokens)) {
    try {
      translate_group(requests, sentences, group, results);
    } catch (const NoProbability& error) {
      const size_t item = group[static_cast<size_t>(error.sentence())];
      const size_t request = sentences[item].request;
      throw NoProbability(
          static_cast<int64_t>(request),
          place_of(requests[request]) + error.what());
    }
  }
  return results;
}

}  // namespace seqconv
