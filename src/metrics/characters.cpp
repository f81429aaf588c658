#include "metrics/characters.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

namespace seqconv::internal::metrics {
namespace {

/// Reads the character at `at` and moves on behind it.
char32_t next_character(std::string_view text, size_t& at) {
  if (const auto c = static_cast<unsigned char>(text[at]); c < 0x80) {
    ++at;
    return c;
  }
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), at, text.size(), c);
  return static_cast<char32_t>(c);
}

}  // namespace

bool is_ascii(std::string_view text) {
  char bits = 0;
  for (char c : text)
    bits |= c;
  return static_cast<unsigned char>(bits) < 0x80;
}

bool is_valid_utf8(std::string_view text) {
  if (is_ascii(text))
    return true;
  UChar32 c = 0;
  for (size_t i = 0; i < text.size() && c >= 0;)
    U8_NEXT(text.data(), i, text.size(), c);
  return c >= 0;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();)
    out += next_character(text, i);
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) {
    char bytes[4];
    size_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, c);
    out.append(bytes, length);
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  return is_valid_utf8(text) ? std::string(text) : encode_utf8(decode_utf8(text));
}

bool is_space(char32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

size_t space_length(std::string_view text, size_t at) {
  size_t end = at;
  return is_space(next_character(text, end)) ? end - at : 0;
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
  icu::UnicodeString lowered = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  lowered.toLower(icu::Locale::getRoot()).toUTF8String(out);
  return out;
}

std::string_view trim_start(std::string_view text) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && is_space(next_character(text, at));)
    begin = at;
  return text.substr(begin);
}

std::string_view trim_end(std::string_view text) {
  auto end = static_cast<int32_t>(text.size());
  while (end > 0) {
    int32_t at = end;
    UChar32 c = 0;
    U8_PREV_OR_FFFD(text.data(), 0, at, c);
    if (!is_space(static_cast<char32_t>(c)))
      break;
    end = at;
  }
  return text.substr(0, static_cast<size_t>(end));
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    if (!is_space(next_character(text, at)))
      continue;
    if (here > begin)
      words.push_back(text.substr(begin, here - begin));
    begin = at;
  }
  if (text.size() > begin)
    words.push_back(text.substr(begin));
  return words;
}

}  // namespace seqconv::internal::metrics
