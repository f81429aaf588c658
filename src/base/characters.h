#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Facts about characters, of Unicode 15.0: categories and case from utf8proc, what that
/// lacks from a table that the build makes (tools/make_character_table.py). Whatever is
/// no character has none of the properties.
namespace seqconv::internal {

// General categories.
bool is_letter(char32_t c);
/// True where some character is a letter. Ill-formed UTF-8 reads as U+FFFD.
bool has_letter(std::string_view text);
bool is_mark(char32_t c);
bool is_number(char32_t c);
bool is_decimal_digit(char32_t c);
/// Letters, marks and numbers: what words are made of.
bool is_part_of_word(char32_t c);
bool is_other_number(char32_t c);  ///< fractions, superscripts, numbers in circles
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);
bool is_currency_symbol(char32_t c);

// Derived properties of these names.
bool is_alphabetic(char32_t c);
bool is_lowercase(char32_t c);
bool is_default_ignorable(char32_t c);

/// Versions of Unicode that may have had a character.
enum class UnicodeAge : uint8_t { kLater, kUpTo9, kUpTo7 };

/// The first of the versions that had the character; kLater too for what is none.
UnicodeAge unicode_age(char32_t c);

/// Scripts that are told apart; kKana is Hiragana and Katakana.
enum class Script : uint8_t {
  kOther,
  kHan,
  kKana,
  kHangul,
  kThai,
  kLao,
  kKhmer,
  kMyanmar,
  kTibetan,
};
inline constexpr size_t kScripts = 9;

/// The script that a character belongs to.
Script script_of(char32_t c);
/// True for letters of languages that put no blanks between words.
bool is_written_without_spaces(char32_t c);

/// Tells whether a character is used with Han, Kana or Hangul, which some are with
/// several (Script_Extensions); false for other scripts.
bool is_used_with(char32_t c, Script script);

/// White space as Python's str.split sees it: Unicode's White_Space and the
/// separators U+001C to U+001F.
inline bool is_space(char32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
      c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// True for text without words: empty, or white space (is_space) alone.
bool is_blank(std::string_view text);

/// The words between runs of white space (is_space); views into `text`.
std::vector<std::string_view> split_words(std::string_view text);

/// The lines of a text, each with its end, cut wherever Python's str.splitlines
/// cuts: behind LF, CRLF, CR, VT, FF, U+001C to U+001E, U+0085, U+2028 and
/// U+2029. Views into `text`.
std::vector<std::string_view> split_lines(std::string_view text);

/// Without white space (is_space) at the start, and at the end, as Python's str.lstrip
/// and str.rstrip; views.
std::string_view trim_start(std::string_view text);
std::string_view trim_end(std::string_view text);

/// Adds what a character is without regard to case, compatible forms and composition
/// (Unicode's NFKD and case folding).
void append_folded(char32_t c, std::u32string& text);

/// Lower case by Unicode's full mapping in the root locale (no Turkish i; final
/// sigma by context), ill-formed sequences as U+FFFD. Python's str.lower is the same
/// but for characters that one of the two Unicode versions does not know.
std::string to_lower(std::string_view text);

}  // namespace seqconv::internal
