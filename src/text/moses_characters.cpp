#include "text/moses_characters.h"

#include <algorithm>
#include <array>

#include "base/characters.h"
#include "base/made_once.h"

namespace seqconv::internal::moses {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <size_t N>
bool within(const std::array<Range, N>& ranges, char32_t c) {
  const auto* const found = std::partition_point(
      ranges.begin(), ranges.end(), [c](const Range& range) { return range.last < c; });
  return found != ranges.end() && found->first <= c;
}

/// Viramas and nuktas that join the letters of Indic scripts and count as such.
constexpr auto kJoiners = std::to_array<Range>(
    {{0x093C, 0x093C},   {0x094D, 0x094D},   {0x09BC, 0x09BC},   {0x09CD, 0x09CD},
     {0x0A3C, 0x0A3C},   {0x0A4D, 0x0A4D},   {0x0ABC, 0x0ABC},   {0x0ACD, 0x0ACD},
     {0x0AFD, 0x0AFF},   {0x0B3C, 0x0B3C},   {0x0B4D, 0x0B4D},   {0x0BCD, 0x0BCD},
     {0x0C4D, 0x0C4D},   {0x0CBC, 0x0CBC},   {0x0CCD, 0x0CCD},   {0x0D3B, 0x0D3C},
     {0x0D4D, 0x0D4D},   {0x0DCA, 0x0DCA},   {0x0EBA, 0x0EBA},   {0x1039, 0x1039},
     {0x1714, 0x1714},   {0x1BAB, 0x1BAB},   {0x1C37, 0x1C37},   {0xA8C4, 0xA8C4},
     {0xA8F3, 0xA8F4},   {0xA953, 0xA953},   {0xAAF6, 0xAAF6},   {0x10A3F, 0x10A3F},
     {0x11046, 0x11046}, {0x110B9, 0x110BA}, {0x11133, 0x11133}, {0x11173, 0x11173},
     {0x111C0, 0x111C0}, {0x111CA, 0x111CA}, {0x11235, 0x11236}, {0x112E9, 0x112EA},
     {0x1133C, 0x1133C}, {0x1134D, 0x1134D}, {0x11442, 0x11442}, {0x11446, 0x11446},
     {0x114C2, 0x114C3}, {0x115BF, 0x115C0}, {0x1163F, 0x1163F}, {0x116B6, 0x116B7},
     {0x11839, 0x1183A}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11C3F, 0x11C3F},
     {0x11D42, 0x11D42}, {0x11D45, 0x11D45}, {0x11D97, 0x11D97}, {0x1E94A, 0x1E94A}});

/// Alphabetic today, but not when the lists were made.
constexpr auto kLaterLetters = std::to_array<Range>(
    {{0x0F82, 0x0F83},
     {0x1063, 0x1064},
     {0x1069, 0x106D},
     {0x1087, 0x108D},
     {0x108F, 0x108F},
     {0x109A, 0x109B},
     {0x1C36, 0x1C36},
     {0xA802, 0xA802},
     {0xA80B, 0xA80B},
     {0xA9E5, 0xA9E5},
     {0xAA7B, 0xAA7D}});

/// The blocks of is_cjk.
constexpr auto kCjk = std::to_array<Range>(
    {{0x1101, 0x11FE},
     {0x2E81, 0xA4CE},
     {0xA841, 0xA87E},
     {0xAC01, 0xD7AE},
     {0xF901, 0xFAFE},
     {0xFE31, 0xFE4E},
     {0xFF66, 0xFFDB},
     {0x17001, 0x18AFE},
     {0x1B001, 0x1B0FE},
     {0x1B171, 0x1B2FE},
     {0x20000, 0x2FFFF}});

bool is_of_unicode_7(char32_t c) {
  return unicode_age(c) == UnicodeAge::kUpTo7;
}

bool is_of_unicode_9(char32_t c) {
  return unicode_age(c) != UnicodeAge::kLater;
}

bool is_han_or_hangul_syllable(char32_t c) {
  return (c >= 0xAC00 && c <= 0xD7A3) || script_of(c) == Script::kHan;
}

bool is_alpha(char32_t c) {
  if (within(kJoiners, c) || c == 0x135F)
    return true;
  return c < 0x10000 && is_alphabetic(c) && is_of_unicode_7(c) && !is_han_or_hangul_syllable(c) &&
      !within(kLaterLetters, c);
}

bool is_lower(char32_t c) {
  const bool georgian = c >= 0x10D0 && c <= 0x10FF;  // later, as lower case
  return is_lowercase(c) && is_of_unicode_9(c) && !georgian;
}

bool is_digit(char32_t c) {
  return c < 0x10000 && is_decimal_digit(c) && is_of_unicode_7(c);
}

uint8_t compute_plain(char32_t c) {
  if (c < 0x20)
    return is_space(c) ? kSpace : kJunk;
  const bool alpha = is_alpha(c);
  const bool digit = is_digit(c);
  return static_cast<uint8_t>(
      (is_space(c) ? kSpace : 0) | (alpha ? kAlpha : 0) | (alpha || digit ? kAlnum : 0) |
      ((alpha || digit) && is_number(c) ? kNumber : 0) | (is_lower(c) ? kLower : 0));
}

/// Scripts whose letters a language adds, as bits.
enum Added : uint8_t { kHangul = 1, kHan = 2, kKana = 4 };

uint8_t scripts_of(std::string_view language) {
  if (language == "ko")
    return kHangul;
  if (language == "zh")
    return kHan;
  if (language == "ja")
    return kHan | kKana;
  if (language == "cjk")
    return kHangul | kHan | kKana;
  return 0;
}

bool is_of_scripts(char32_t c, uint8_t scripts) {
  const bool any = ((scripts & kHan) && is_used_with(c, Script::kHan)) ||
      ((scripts & kHangul) && is_used_with(c, Script::kHangul)) ||
      ((scripts & kKana) && is_used_with(c, Script::kKana));
  const bool tone_sign = c >= 0xA700 && c <= 0xA707;  // Han's since later
  return any && is_of_unicode_9(c) && !tone_sign;
}

}  // namespace

Characters::Characters(std::string_view language) : scripts_(scripts_of(language)) {
  // Below its end there are no letters of the scripts that languages add.
  using Table = std::array<uint8_t, kTableSize>;
  static MadeOnce<Table> table;
  const auto compute_table = [] {
    Table properties{};
    for (char32_t c = 0; c < kTableSize; ++c)
      properties[c] = compute_plain(c);
    return properties;
  };
  table_ = table.get(compute_table).data();
}

uint8_t Characters::compute(char32_t c) const {
  const uint8_t plain = compute_plain(c);
  if (scripts_ == 0 || (plain & kAlnum) || !is_of_scripts(c, scripts_))
    return plain;
  // The lists of numerals have none that are letters of Han.
  const bool number = c < 0x10000 && is_other_number(c);
  return static_cast<uint8_t>(plain | kAlpha | kAlnum | (number ? kNumber : 0));
}

bool is_joiner(char32_t c) {
  return within(kJoiners, c);
}

bool is_currency(char32_t c) {
  if (c < 0x80)
    return c == '$';
  return c < 0x10000 && is_currency_symbol(c) && is_of_unicode_7(c);
}

bool is_cjk(char32_t c) {
  return within(kCjk, c);
}

}  // namespace seqconv::internal::moses
