#include "metrics/scripts.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

namespace seqconv::internal::metrics {
namespace {

bool is_of(char32_t c, uint32_t categories) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & categories) != 0;
}

bool is_long_vowel_sign(char32_t c) {
  return c == 0x30FC || c == 0xFF70;
}

}  // namespace

Script script_of(char32_t c) {
  if (c < 0x0E00)
    return Script::kOther;
  if (is_long_vowel_sign(c))
    return Script::kKana;
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(static_cast<UChar32>(c), &status)) {
    case USCRIPT_HAN:
      return Script::kHan;
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
      return Script::kKana;
    case USCRIPT_THAI:
      return Script::kThai;
    case USCRIPT_LAO:
      return Script::kLao;
    case USCRIPT_KHMER:
      return Script::kKhmer;
    case USCRIPT_MYANMAR:
      return Script::kMyanmar;
    case USCRIPT_TIBETAN:
      return Script::kTibetan;
    default:
      return Script::kOther;
  }
}

bool is_letter(char32_t c) {
  return is_of(c, U_GC_L_MASK);
}

bool is_mark(char32_t c) {
  return is_of(c, U_GC_M_MASK);
}

bool is_number(char32_t c) {
  return is_of(c, U_GC_N_MASK);
}

}  // namespace seqconv::internal::metrics
