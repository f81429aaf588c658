#include "base/characters.h"

#include <utf8proc.h>
#include <character_table.inc>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace seqconv::internal {
namespace {

// The bits of the table's entries (tools/make_character_table.py).
enum Bit : uint16_t {
  kAlphabetic = 1,
  kLowercase = 2,
  kCased = 4,
  kCaseIgnorable = 8,
  kDefaultIgnorable = 16,
  kHanToo = 32,  // then kana, Hangul
};
constexpr int kAgeShift = 8;
constexpr int kScriptShift = 10;

uint16_t table_entry(char32_t c) {
  if (c > 0x10FFFF)
    return 0;
  const size_t block = kCharacterBlocks[c / kCharacterBlockSize];
  return kCharacterEntries[block * kCharacterBlockSize + c % kCharacterBlockSize];
}

bool has_bit(char32_t c, Bit bit) {
  return (table_entry(c) & bit) != 0;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

/// Tells whether the category is one of those from `first` to `last`.
bool is_of(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  const utf8proc_category_t found = category(c);
  return found >= first && found <= last;
}

/// Bytes of the line's end that begins at `position`, 0 when none does.
size_t line_end_size(std::string_view text, size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte >= 0x20 && byte != 0xC2 && byte != 0xE2)
    return 0;
  constexpr std::array<std::string_view, 11> kEnds = {
      "\r\n",
      "\n",
      "\r",
      "\v",
      "\f",
      "\x1C",
      "\x1D",
      "\x1E",
      "\xC2\x85",
      "\xE2\x80\xA8",
      "\xE2\x80\xA9"};
  for (std::string_view end : kEnds)
    if (text.substr(position).starts_with(end))
      return end.size();
  return 0;
}

/// Tells whether the first of the characters that case does not ignore is one of two
/// cases.
template <class Iterator>
bool begins_with_cased(Iterator begin, Iterator end) {
  const auto first =
      std::find_if(begin, end, [](char32_t c) { return !has_bit(c, kCaseIgnorable); });
  return first != end && has_bit(*first, kCased);
}

/// Lower case of the character at `at`, which a capital sigma has by what is around it.
void append_lower(const std::u32string& text, size_t at, std::string& out) {
  constexpr char32_t kCapitalIWithDot = 0x130, kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;
  const char32_t c = text[at];
  if (c == kCapitalIWithDot) {
    out += "i\xCC\x87";  // U+0307
    return;
  }
  const auto here = text.begin() + static_cast<std::ptrdiff_t>(at);
  const bool final = c == kCapitalSigma &&
      begins_with_cased(std::reverse_iterator(here), text.rend()) &&
      !begins_with_cased(here + 1, text.end());
  append_utf8(
      final ? kFinalSigma
            : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
      out);
}

}  // namespace

bool is_letter(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool has_letter(std::string_view text) {
  for (size_t position = 0; position < text.size();)
    if (is_letter(next_code_point(text, position)))
      return true;
  return false;
}

bool is_mark(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}

bool is_number(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_part_of_word(char32_t c) {
  return is_letter(c) || is_mark(c) || is_number(c);
}

bool is_decimal_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_other_number(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_symbol(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO);
}

bool is_currency_symbol(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_SC;
}

bool is_alphabetic(char32_t c) {
  return has_bit(c, kAlphabetic);
}

bool is_lowercase(char32_t c) {
  return has_bit(c, kLowercase);
}

bool is_default_ignorable(char32_t c) {
  return has_bit(c, kDefaultIgnorable);
}

UnicodeAge unicode_age(char32_t c) {
  return static_cast<UnicodeAge>(table_entry(c) >> kAgeShift & 3);
}

Script script_of(char32_t c) {
  return static_cast<Script>(table_entry(c) >> kScriptShift);
}

bool is_written_without_spaces(char32_t c) {
  return script_of(c) != Script::kOther && script_of(c) != Script::kHangul;
}

bool is_used_with(char32_t c, Script script) {
  if (script < Script::kHan || script > Script::kHangul)
    return false;
  return (table_entry(c) & kHanToo << (static_cast<int>(script) - 1)) != 0;
}

bool is_blank(std::string_view text) {
  return trim_start(text).empty();
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    if (!is_space(next_code_point(text, position)))
      continue;
    if (start > begin)
      words.push_back(text.substr(begin, start - begin));
    begin = position;
  }
  if (begin < text.size())
    words.push_back(text.substr(begin));
  return words;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t end = line_end_size(text, position);
    position += std::max<size_t>(end, 1);
    if (end == 0)
      continue;
    lines.push_back(text.substr(begin, position - begin));
    begin = position;
  }
  if (begin < text.size())
    lines.push_back(text.substr(begin));
  return lines;
}

std::string_view trim_start(std::string_view text) {
  size_t begin = 0;
  for (size_t position = 0; position < text.size() && is_space(next_code_point(text, position));)
    begin = position;
  return text.substr(begin);
}

std::string_view trim_end(std::string_view text) {
  size_t end = text.size();
  for (size_t position = end; position > 0 && is_space(previous_code_point(text, position));)
    end = position;
  return text.substr(0, end);
}

void append_folded(char32_t c, std::u32string& text) {
  std::array<utf8proc_int32_t, 32> parts{};  // the longest has 18
  int boundary = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(), options, &boundary);
  if (count < 0 || count > std::ssize(parts))
    text += c;  // no code point
  else
    text.append(parts.begin(), parts.begin() + count);
}

std::string to_lower(std::string_view text) {
  std::string out;
  if (is_ascii(text)) {
    out = text;
    for (char& c : out)
      if (c >= 'A' && c <= 'Z')
        c = static_cast<char>(c | 0x20);
    return out;
  }
  const std::u32string characters = decode_utf8(text);
  out.reserve(text.size());
  for (size_t i = 0; i < characters.size(); ++i)
    append_lower(characters, i, out);
  return out;
}

}  // namespace seqconv::internal
