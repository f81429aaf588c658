#include "conversions.h"

#include <algorithm>
#include <sstream>

namespace seqconv::api {
namespace {

template <class T>
void set(T& option, const std::optional<T>& given) {
  if (given)
    option = *given;
}

SearchOptions to_search(const SearchSettings& given, SearchOptions options) {
  set(options.beam, given.beam);
  set(options.n_best, given.n_best);
  set(options.length_penalty, given.length_penalty);
  set(options.max_length_a, given.max_length_a);
  set(options.max_length_b, given.max_length_b);
  set(options.min_length, given.min_length);
  set(options.no_repeat_ngram, given.no_repeat_ngram);
  set(options.unknown_penalty, given.unknown_penalty);
  // The model's own list is not longer than a beam that was asked for.
  if (!given.n_best)
    options.n_best = std::min(options.n_best, options.beam);
  return options;
}

Translation to_translation(const seqconv::Translation& found) {
  Translation translation{
      .text = found.text,
      .tokens = {},
      .score = found.score,
      .log_probability = found.log_probability,
      .token_scores = found.token_scores};
  std::istringstream tokens(found.tokens);
  for (std::string token; std::getline(tokens, token, ' ');)
    translation.tokens.push_back(token);
  return translation;
}

}  // namespace

seqconv::SamplingOptions to_sampling(const SamplingSettings& settings) {
  return {
      .temperature = settings.temperature,
      .top_k = settings.top_k,
      .top_p = settings.top_p,
      .ban_unknown = settings.ban_unknown};
}

seqconv::TranslationRequest to_request(
    const TranslationRequest& request,
    const SearchOptions& defaults) {
  seqconv::TranslationRequest result{
      .line = request.text,
      .target_prefix = request.target_prefix,
      .search = to_search(request.search, defaults)};
  if (request.sampling) {
    result.sampling = to_sampling(*request.sampling);
    result.seed = request.sampling->seed;
  }
  return result;
}

TranslationResult to_result(const seqconv::TranslationResult& result) {
  TranslationResult converted{
      .translations = {},
      .error = result.error,
      .cancelled = result.error == kStopped,
      .notes = result.notes};
  if (converted.cancelled)
    converted.error = "cancelled";
  for (const seqconv::Translation& translation : result.translations)
    converted.translations.push_back(to_translation(translation));
  return converted;
}

}  // namespace seqconv::api
