#include "pipeline/prepared_sentence.h"

#include <algorithm>

#include "pipeline/piece_check.h"
#include "pipeline/request_text.h"
#include "pipeline/sentence_terms.h"
#include "search/sampled_search.h"

namespace seqconv::internal {
namespace {

const OptionNames kKeys("");

/// Error for ids that the vocabulary does not have.
void check_ids(const std::vector<int32_t>& ids, const Vocabulary& vocabulary) {
  for (const int32_t id : ids)
    SEQCONV_CHECK(
        id >= 0 && id < vocabulary.size(),
        "ids of a sentence must be between 0 and ",
        vocabulary.size() - 1,
        ", but got ",
        id);
}

/// UsageError for options of a request that make no sense together.
void validate(const TranslationInput& request, const DecodingOptions& search) {
  refuse_both(request.text, "text", request.tokens.has_value(), "tokens");
  if (!request.terms.empty() && request.text.empty() && request.tokens)
    fail_usage("terms must be for a text, but tokens are given");
  refuse_both(
      request.target_prefix, "prefix", request.target_prefix_tokens.has_value(), "prefix_tokens");
  const std::optional<SamplingOptions>& sampling = request.sampling;
  if (sampling) {
    refuse_beside_draws(request.search, "");
    if (!request.terms.empty())
      fail_usage("terms must be asked of searches, not of draws");
    internal::validate(*sampling, "sampling");
  }
  (sampling ? without_beam(search) : search).validate("");
}

/// A request while it is read.
struct SentenceReading {
  const TranslationSystem& system;
  const TranslatorOptions& options;
  const TranslationInput& request;
  TranslationOutcome& result;

  std::vector<int32_t> source_ids(const Slots& slots) const;
  SearchInput search_input(const PreparedSentence& sentence) const;
  PreparedSentence read() const;
};

std::vector<int32_t> SentenceReading::source_ids(const Slots& slots) const {
  const TextPipeline& text = *system.text.source;
  std::vector<int32_t> ids = request.ids ? *request.ids
      : request.tokens                   ? token_ids(text.vocabulary(), *request.tokens)
                                         : encode_text(text, request.text, slots, "a line");
  check_ids(ids, text.vocabulary());
  const auto cut = [&](int64_t most, const char* whose, const char* what) {
    const auto length = std::ssize(ids) + 1;
    if (!cut_tokens(ids, most))
      return false;
    result.notes.push_back(concat("a line of ", length, " tokens is cut to ", whose, most, what));
    return true;
  };
  constexpr const char* kModel = "the model's ";
  const int64_t own = options.max_source_tokens;
  const int64_t model = system.text.max_source_tokens;
  if (own > 0 && (model == 0 || own < model))
    cut(own, "the ", " that are wanted at most (max_source_tokens)");
  else
    result.source_cut = cut(model, kModel, " (max_source_tokens)");
  cut(system.backend->limits().source, kModel, " positions");
  return ids;
}

SearchInput SentenceReading::search_input(const PreparedSentence& sentence) const {
  const DecodingOptions& search = sentence.search;
  const int64_t source_length = std::ssize(sentence.source) + 1;
  const TextPipeline& text = *system.text.target;
  SearchInput input{
      source_length,
      request.target_prefix_tokens
          ? token_ids(text.vocabulary(), *request.target_prefix_tokens)
          : encode_text(text, request.target_prefix, sentence.slots, "a target prefix")};
  if (std::string note = unknown_note(SymbolCount::of(input.prefix), "the target prefix");
      !note.empty())
    result.notes.push_back(std::move(note));
  const int64_t steps = or_no_limit(system.backend->limits().target);
  const int64_t most = maximum_length(search, source_length, steps);
  const OptionNames& names = request.search == SearchOptions() ? options.names : kKeys;
  if (std::max<int64_t>(most, 1) < search.min_length && most < steps - 1)
    result.notes.push_back(concat(
        "a translation has at most ",
        most,
        " tokens by ",
        names("max_length_a"),
        " and ",
        names("max_length_b"),
        ", fewer than ",
        names("min_length"),
        " (",
        search.min_length,
        ")"));
  if (std::ssize(input.prefix) > most) {
    result.notes.push_back(concat(
        "a target prefix of ",
        input.prefix.size(),
        " tokens is cut to the ",
        most,
        " that ",
        most == steps - 1 ? "the model's learned positions"
                          : concat(names("max_length_a"), " and ", names("max_length_b")),
        " allow"));
    input.prefix.resize(static_cast<size_t>(most));
  }
  return input;
}

PreparedSentence SentenceReading::read() const {
  PreparedSentence sentence{
      .given = &request,
      .search = resolve_search(request.search, options.search),
      .sampling = request.sampling,
      .ban_unknown = request.search.ban_unknown.value_or(options.ban_unknown),
      .result = &result};
  validate(request, sentence.search);
  if (!request.tokens)
    sentence.slots = system.text.source->slots_of(request.text);
  sentence.source = source_ids(sentence.slots);
  const bool has_prefix = !request.target_prefix.empty() ||
      (request.target_prefix_tokens && !request.target_prefix_tokens->empty());
  if (sentence.source.empty() && has_prefix)
    result.notes.emplace_back("an empty line has no translation: its target prefix is not used");
  if (sentence.source.empty())
    return sentence;
  sentence.input = search_input(sentence);
  SentenceTerms terms = terms_of(
      system, {request, sentence.source, sentence.slots, sentence.sampling.has_value()}, result);
  sentence.input.terms = std::move(terms.ids);
  if (!terms.targets.empty())
    sentence.input.edges = &system.term_words->edges();
  sentence.terms = std::move(terms.targets);
  sentence.slot_tokens = usable_slots(
      *system.text.source, sentence.source, *system.text.target, sentence.input.prefix);
  return sentence;
}

}  // namespace

PreparedSentence prepare_sentence(
    const TranslationSystem& system,
    const TranslatorOptions& options,
    const TranslationInput& request,
    TranslationOutcome& result) {
  return SentenceReading{system, options, request, result}.read();
}

}  // namespace seqconv::internal
