#include "serve/detect.h"

#include <algorithm>

#include "serve/answers.h"
#include "serve/languages.h"

#ifdef SEQCONV_CLD2
#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>
#endif

namespace seqconv::internal {
namespace {

#ifdef SEQCONV_CLD2

constexpr bool kDetects = true;

/// The codes that CLD2 gives, in ours.
std::string code_of(CLD2::Language language) {
  const std::string code = CLD2::LanguageCode(language);
  return normal_code(code == "iw" ? "he" : code == "jw" ? "jv" : code == "in" ? "id" : code);
}

std::vector<DetectedLanguage> likely(std::string_view text, bool is_html) {
  // It says nothing of text that it does not take.
  CLD2::Language languages[3] = {
      CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE};
  int percents[3] = {};
  double scores[3] = {};
  int bytes = 0, valid = 0;
  bool is_reliable = false;
  const CLD2::CLDHints hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  const auto size = static_cast<int>(std::min<size_t>(text.size(), 1 << 20));
  CLD2::ExtDetectLanguageSummaryCheckUTF8(
      text.data(),
      size,
      !is_html,
      &hints,
      0,
      languages,
      percents,
      scores,
      nullptr,
      &bytes,
      &is_reliable,
      &valid);
  std::vector<DetectedLanguage> found;
  for (int i = 0; i < 3; ++i)
    if (languages[i] != CLD2::UNKNOWN_LANGUAGE && percents[i] > 0)
      found.push_back({code_of(languages[i]), is_reliable ? 1.0 * percents[i] : 0.5 * percents[i]});
  return found;
}

#else

constexpr bool kDetects = false;

std::vector<DetectedLanguage> likely(std::string_view, bool) {
  return {};
}

#endif

// "no" is what CLD2 calls both.
bool means(const std::string& found, std::string_view allowed) {
  const std::string normal = normal_code(allowed);
  return found == normal || (found == "no" && normal == "nb") ||
      (found == "pt" && normal == "pt-BR");
}

}  // namespace

bool detects_languages() {
  return kDetects;
}

std::vector<DetectedLanguage> detect_language(
    std::string_view text, const std::vector<std::string>& allowed, bool is_html) {
  if (!kDetects && allowed.size() > 1)
    throw CallError(400, "This server cannot detect languages: source must be a code");
  std::vector<DetectedLanguage> detected;
  for (const DetectedLanguage& found : likely(text, is_html))
    for (const std::string& code : allowed)
      if (means(found.language, code) &&
          std::ranges::find(detected, code, &DetectedLanguage::language) == detected.end())
        detected.push_back({code, found.confidence});
  if (detected.empty() && !allowed.empty()) {
    const bool has_english = std::ranges::find(allowed, "en") != allowed.end();
    detected.push_back({has_english ? "en" : allowed[0], 0});
  }
  return detected;
}

}  // namespace seqconv::internal
