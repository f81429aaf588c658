#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/translator.h"

/// Requests to translate as the search takes them.
namespace seqconv::internal {

/// No limit of steps or sentences.
inline constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

inline int64_t or_no_limit(int64_t positions) {
  return positions > 0 ? positions : kNoLimit;
}

/// A request that can be translated.
struct PreparedSentence {
  const TranslationInput* given = nullptr;
  DecodingOptions search;
  const std::optional<SamplingOptions>& sampling;
  bool ban_unknown = false;
  std::vector<int32_t> source;
  SearchInput input;
  Slots slots;                       ///< of its protected pieces
  std::vector<int32_t> slot_tokens;  ///< that its translation may have
  std::vector<std::string> terms;    ///< that it must hold, as they are spelled
  TranslationOutcome* result = nullptr;
  size_t request = 0;  ///< its number
};

/// Reads a request, which outlives what is returned, as `result` does; notes there what was cut or
/// replaced. An empty source has no translation. Errors as of TranslationOutcome.
PreparedSentence prepare_sentence(
    const TranslationSystem& system,
    const TranslatorOptions& options,
    const TranslationInput& request,
    TranslationOutcome& result);

}  // namespace seqconv::internal
