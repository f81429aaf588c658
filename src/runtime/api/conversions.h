#pragma once

#include "pipeline/translator.h"
#include "runtime/runtime_backends.h"
#include "seqconv/runtime.h"

/// Between this library and the layers below.
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

/// The request with the seed of its draws; number: its own in its call, from 1.
internal::TranslationInput to_input(const TranslationRequest& request, uint64_t number);

/// The result, with a note on unknown symbols. It says so where there is not memory enough for
/// a copy.
TranslationResult to_result(const internal::TranslationOutcome& outcome) noexcept;

/// RequestError or OutOfMemory for a result that is not ok.
void require_ok(const Result& result);

}  // namespace seqconv
