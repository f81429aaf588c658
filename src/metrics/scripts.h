#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace seqconv::internal::metrics {

/// Scripts whose words stand without blanks between them; kOther: all others.
enum class Script : uint8_t {
  kOther,
  kHan,
  kKana,
  kThai,
  kLao,
  kKhmer,
  kMyanmar,
  kTibetan,
};
inline constexpr size_t kScripts = 8;

/// The script of a letter or mark; the sign of a long vowel is kana.
Script script_of(char32_t c);

/// Letters and the marks that belong to them, such as Thai vowels.
bool is_letter(char32_t c);
bool is_mark(char32_t c);
bool is_number(char32_t c);

}  // namespace seqconv::internal::metrics
