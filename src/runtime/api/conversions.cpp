#include "runtime/api/conversions.h"

#include <algorithm>
#include <sstream>

#include "base/random.h"
#include "base/threads.h"
#include "runtime/api/guarded.h"
#include "search/sampled_search.h"

namespace seqconv {
namespace {

constexpr int64_t kMostThreads = 1024;
constexpr uint64_t kStandardSeed = 1;  // the program's as well

template <class T>
void set(T& option, const std::optional<T>& given) {
  if (given)
    option = *given;
}

internal::SearchOptions to_search(const SearchSettings& given, internal::SearchOptions options) {
  set(options.beam, given.beam);
  set(options.n_best, given.n_best);
  set(options.length_penalty, given.length_penalty);
  set(options.max_length_a, given.max_length_a);
  set(options.max_length_b, given.max_length_b);
  set(options.min_length, given.min_length);
  set(options.no_repeat_ngram, given.no_repeat_ngram);
  set(options.unknown_penalty, given.unknown_penalty);
  set(options.stepwise_length_penalty, given.stepwise_length_penalty);
  // The model's own list is not longer than a beam that was asked for.
  if (!given.n_best)
    options.n_best = std::min(options.n_best, options.beam);
  return options;
}

/// Names what is a search's alone beside draws; "": nothing.
std::string fault_beside_draws(const SearchSettings& search) {
  std::vector<std::string> given;
  if (search.beam)
    given.emplace_back("beam");
  if (search.stepwise_length_penalty)
    given.emplace_back("stepwise_length_penalty");
  try {
    internal::refuse_beside_draws(given, "");
    return "";
  } catch (const internal::UsageError& error) {
    return error.what();
  }
}

Translation to_translation(const internal::Translation& found) {
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

Status to_status(internal::RequestStatus status) {
  switch (status) {
    case internal::RequestStatus::kDone:
      return Status::kOk;
    case internal::RequestStatus::kInvalid:
      return Status::kInvalid;
    case internal::RequestStatus::kFailed:
      return Status::kFailed;
    case internal::RequestStatus::kOutOfMemory:
      return Status::kOutOfMemory;
    case internal::RequestStatus::kStopped:
      return Status::kCancelled;
  }
  return Status::kFailed;
}

}  // namespace

int64_t check_options(const RuntimeOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads)
    throw OptionError(internal::concat(
        "threads must be between 0 and ", kMostThreads, ", but got ", options.threads));
  if (options.batch_tokens < 1)
    throw OptionError(
        internal::concat("batch_tokens must be at least 1, but got ", options.batch_tokens));
  if (options.logits_bytes < 1)
    throw OptionError(
        internal::concat("logits_bytes must be at least 1, but got ", options.logits_bytes));
  if (options.max_source_tokens < 0)
    throw OptionError(internal::concat(
        "max_source_tokens must be at least 0, but got ", options.max_source_tokens));
  return options.threads > 0 ? options.threads : internal::thread_count(0);
}

int64_t check_options_of_others(const RuntimeOptions& options) {
  if (!options.shortlist.empty())
    throw OptionError(internal::concat(
        "a shortlist is for a Translator alone, but got '", options.shortlist, "'"));
  if (options.max_source_tokens > 0)
    throw OptionError(internal::concat(
        "max_source_tokens is for a Translator alone, but got ", options.max_source_tokens));
  return check_options(options);
}

internal::RootedPath to_path(const std::string& model, const RuntimeOptions& options) {
  return {model, options.follow_links ? internal::Links::kAnywhere : internal::Links::kInside};
}

internal::RuntimeBackends to_backends(const RuntimeOptions& options) {
  const int64_t memory = options.logits_bytes;
  switch (options.compute) {
    case ComputeType::kModel:
      return internal::RuntimeBackends(internal::ComputeType::kModel, memory);
    case ComputeType::kAuto:
      return internal::RuntimeBackends(internal::ComputeType::kAuto, memory);
    case ComputeType::kFloat32:
      return internal::RuntimeBackends(internal::ComputeType::kFloat32, memory);
    case ComputeType::kBfloat16:
      return internal::RuntimeBackends(internal::ComputeType::kBfloat16, memory);
    case ComputeType::kInt8:
      return internal::RuntimeBackends(internal::ComputeType::kInt8, memory);
  }
  throw OptionError(internal::concat(
      "compute must be one of ComputeType, but got ", static_cast<int>(options.compute)));
}

internal::SamplingOptions to_sampling(const SamplingSettings& settings) {
  return {
      .temperature = settings.temperature,
      .top_k = settings.top_k,
      .top_p = settings.top_p,
      .ban_unknown = settings.ban_unknown};
}

internal::TranslationRequest to_request(
    const TranslationRequest& request, const internal::SearchOptions& defaults, uint64_t number) {
  internal::TranslationRequest result{
      .line = request.text,
      .target_prefix = request.target_prefix,
      .search = to_search(request.search, defaults),
      .ban_unknown = request.search.ban_unknown};
  if (request.sampling) {
    result.sampling = to_sampling(*request.sampling);
    result.seed = request.sampling->seed.value_or(internal::mix_words(kStandardSeed, number));
    result.error = fault_beside_draws(request.search);
  }
  return result;
}

void set_failure(Result& result, Status status, const char* error) noexcept {
  try {
    result.error = error;
    result.status = status;
  } catch (const std::bad_alloc&) {
    result.error = "out of memory";  // short enough to need none
    result.status = Status::kOutOfMemory;
  }
}

void set_outcome(Result& result, const internal::RequestOutcome& outcome) noexcept {
  try {
    result.notes = outcome.notes;
  } catch (const std::bad_alloc&) {
    return set_failure(result, Status::kOutOfMemory, internal::kOutOfMemory);
  }
  if (outcome.status != internal::RequestStatus::kDone)
    set_failure(result, to_status(outcome.status), outcome.error.c_str());
}

TranslationResult to_result(const internal::TranslationResult& result) noexcept {
  TranslationResult converted;
  set_outcome(converted, result);
  if (!converted.ok())
    return converted;
  try {
    if (std::string note = internal::unknown_note(result.symbols, "the text"); !note.empty())
      converted.notes.push_back(std::move(note));
    for (const internal::Translation& translation : result.translations)
      converted.translations.push_back(to_translation(translation));
  } catch (const std::bad_alloc&) {
    converted.translations.clear();
    set_failure(converted, Status::kOutOfMemory, internal::kOutOfMemory);
  }
  return converted;
}

void require_ok(const Result& result) {
  if (result.status == Status::kOutOfMemory)
    throw out_of_memory();
  if (!result.ok())
    throw RequestError(result.error);
}

}  // namespace seqconv
