#pragma once

#include <string>
#include <vector>

#include "pipeline/translator.h"
#include "runtime/api/status.h"

/// Results as C sees them: each owns what it points to.
namespace seqconv::internal {

/// Frees a result; kNoMemoryResult is none that is owned.
struct FreeResult {
  void operator()(seqconv_result* result) const { seqconv_result_free(result); }
};
using OwnResult = std::unique_ptr<seqconv_result, FreeResult>;

/// The result that there is always memory for.
seqconv_result* no_memory_result() noexcept;

seqconv_status to_status(Status status) noexcept;

/// All of these give no_memory_result() where there is not memory enough, and throw nothing.
OwnResult make_result(TranslationResult result) noexcept;
OwnResult make_result(ScoreResult result) noexcept;
OwnResult make_result(GenerationResult result) noexcept;
/// A request that failed.
OwnResult make_failure(Status status, const char* error) noexcept;
/// A part: `text` follows the first `kept` bytes of what is known. Null without memory: a later
/// part tells more.
OwnResult make_part(size_t kept, std::string text) noexcept;

}  // namespace seqconv::internal
