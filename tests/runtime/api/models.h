#pragma once

#include <string>
#include <vector>

#include "seqconv/runtime.h"

/// Folders that are in the repository, and requests that they understand.
namespace seqconv {

inline const std::string kModel = SEQCONV_FOLDERS "/translation_2";
inline const std::string kLanguageModel = SEQCONV_FOLDERS "/language_1";

inline TranslationRequest request(std::string text) {
  TranslationRequest request{.text = std::move(text)};
  request.search.max_length_b = 12;
  return request;
}

/// Texts of no to six words, some with a translation that is drawn.
inline std::vector<TranslationRequest> requests(size_t count) {
  std::vector<TranslationRequest> all;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t word = 0; word < i % 7; ++word)
      text += "dalan mira ";
    all.push_back(request(text));
    if (i % 5 == 0)
      all.back().sampling = SamplingOptions{.seed = i};
  }
  return all;
}

/// A model whose text has protected pieces, of all kinds.
inline const std::string kProtectedModel = SEQCONV_FOLDERS "/protected_pairs_6";

/// A model without learned positions, for which nothing is too long.
inline const std::string kUnlimitedModel = SEQCONV_FOLDERS "/translation_1";

/// A request to it that takes far longer than any test waits.
inline TranslationRequest endless_request() {
  TranslationRequest endless = request("dalan mira");
  endless.search.beam = 400;
  endless.search.min_length = 1'000'000;
  endless.search.max_length_b = 1'000'000;
  return endless;
}

}  // namespace seqconv
