#include "runtime/api/conversions.h"

#include <algorithm>

#include "base/random.h"
#include "base/threads.h"
#include "runtime/api/guarded.h"

namespace seqconv {
namespace {

constexpr int64_t kMostThreads = 1024;
constexpr uint64_t kStandardSeed = 1;  // the program's as well

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
  const auto& names = internal::EnumNames<ComputeType>::kNames;
  if (std::ranges::none_of(names, [&](const auto& of) { return of.second == options.compute; }))
    throw OptionError(internal::concat(
        "compute must be one of ComputeType, but got ", static_cast<int>(options.compute)));
  return internal::RuntimeBackends(options.compute, options.logits_bytes);
}

internal::TranslationInput to_input(const TranslationRequest& request, uint64_t number) {
  internal::TranslationInput input{request};
  if (input.sampling && !input.sampling->seed)
    input.sampling->seed = internal::mix_words(kStandardSeed, number);
  return input;
}

TranslationResult to_result(const internal::TranslationOutcome& outcome) noexcept {
  TranslationResult result;
  try {
    result = outcome;
    if (std::string note = internal::unknown_note(outcome.symbols, "the text");
        result.ok() && !note.empty())
      result.notes.push_back(std::move(note));
  } catch (const std::bad_alloc&) {
    result.translations.clear();
    internal::set_failure(result, Status::kOutOfMemory, internal::kOutOfMemory);
  }
  return result;
}

void require_ok(const Result& result) {
  if (result.status == Status::kOutOfMemory)
    throw out_of_memory();
  if (!result.ok())
    throw RequestError(result.error);
}

}  // namespace seqconv
