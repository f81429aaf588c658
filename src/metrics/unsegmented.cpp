#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>

#include "characters.h"
#include "seqconv/metrics/tokenizers.h"

namespace seqconv {
namespace {

// Words of segmented Chinese and Japanese have two characters, of Thai four, in
// the mean; unsegmented stretches are clauses.
constexpr int64_t kLongStretch = 8;

struct LetterCounts {
  int64_t han = 0;
  int64_t kana = 0;
  int64_t thai = 0;
  int64_t all = 0;

  int64_t without_blanks() const { return han + kana + thai; }
};

bool is_ascii_letter(char c) {
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z';
}

void count_letter(char32_t c, LetterCounts& counts) {
  const auto character = static_cast<UChar32>(c);
  // Thai vowel signs are marks.
  const uint32_t mask = U_GET_GC_MASK(character);
  if ((mask & (U_GC_L_MASK | U_GC_M_MASK)) == 0)
    return;
  ++counts.all;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(character, &status);
  counts.han += script == USCRIPT_HAN;
  counts.kana += script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
  counts.thai += script == USCRIPT_THAI;
}

}  // namespace

std::string_view unsegmented_language(const std::vector<std::string>& lines) {
  LetterCounts counts;
  int64_t stretches = 0;
  for (const std::string& line : lines) {
    for (std::string_view word : metrics::split_words(line)) {
      if (metrics::is_ascii(word)) {
        counts.all += std::ranges::count_if(word, is_ascii_letter);
        continue;
      }
      const int64_t before = counts.without_blanks();
      for (char32_t c : metrics::decode_utf8(word))
        count_letter(c, counts);
      stretches += counts.without_blanks() > before;
    }
  }
  const int64_t found = counts.without_blanks();
  if (2 * found <= counts.all || found < kLongStretch * stretches)
    return "";
  if (2 * counts.thai > found)
    return "Thai";
  return 10 * counts.kana > found ? "Japanese" : "Chinese";
}

}  // namespace seqconv
