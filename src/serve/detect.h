#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace seqconv::internal {

struct DetectedLanguage {
  std::string language;   ///< one of those that were allowed
  double confidence = 0;  ///< 0 to 100
};

/// False for a build without detection (SEQCONV_DETECTION).
bool detects_languages();

/// The languages that a text may be in, of those that are allowed, the likeliest first. Never
/// empty where some are allowed: text of a few letters, or of other languages, has confidence 0.
/// CallError 400 where there is a choice and the build has no detection.
std::vector<DetectedLanguage> detect_language(
    std::string_view text, const std::vector<std::string>& allowed, bool is_html);

}  // namespace seqconv::internal
