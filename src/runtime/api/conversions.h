#pragma once

#include "pipeline/translator.h"
#include "runtime/runtime.h"
#include "seqconv/runtime.h"

/// Between the types of this library and those of the layers below.
namespace seqconv {

/// Counts the threads that are meant; OptionError for options that make no
/// sense.
int64_t check_options(const RuntimeOptions& options);
/// The same of what does not translate, which takes no shortlist.
int64_t check_options_of_others(const RuntimeOptions& options);

/// A model's folder or file, with what its links may do.
internal::RootedPath to_path(const std::string& model, const RuntimeOptions& options);

/// OptionError for a type that there is not.
internal::RuntimeBackends to_backends(const RuntimeOptions& options);

internal::SamplingOptions to_sampling(const SamplingSettings& settings);

/// defaults: the model's own; number: the request's in its call, from 1.
internal::TranslationRequest to_request(
    const TranslationRequest& request, const internal::SearchOptions& defaults, uint64_t number);

/// Status, error and notes. Where there is not memory enough for them the
/// result says that.
void set_outcome(Result& result, const internal::RequestOutcome& outcome) noexcept;
void set_failure(Result& result, Status status, const char* error) noexcept;

/// The result says so where there is not memory enough for a copy.
TranslationResult to_result(const internal::TranslationResult& result) noexcept;

/// RequestError or OutOfMemory for a result that is not ok.
void require_ok(const Result& result);

}  // namespace seqconv
