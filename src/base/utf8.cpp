#include "base/utf8.h"

#include <algorithm>

namespace seqconv::internal {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bounds of the byte behind the first one of a sequence.
struct Bounds {
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Bounds second_byte(unsigned char first) {
  switch (first) {
    case 0xE0:
      return {.low = 0xA0};  // no overlong forms
    case 0xED:
      return {.high = 0x9F};  // no surrogates
    case 0xF0:
      return {.low = 0x90};
    case 0xF4:
      return {.high = 0x8F};  // none above U+10FFFF
    default:
      return {};
  }
}

}  // namespace

char32_t detail::decode_long(std::string_view text, size_t& position) {
  const auto first = static_cast<unsigned char>(text[position++]);
  if (first < 0xC2 || first > 0xF4)
    return kIllFormed;
  const int trail = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  char32_t c = first & (0x3Fu >> trail);
  Bounds bounds = second_byte(first);
  for (int i = 0; i < trail; ++i, bounds = {}) {
    if (position == text.size())
      return kIllFormed;
    const auto byte = static_cast<unsigned char>(text[position]);
    if (byte < bounds.low || byte > bounds.high)
      return kIllFormed;
    c = c << 6 | (byte & 0x3Fu);
    ++position;
  }
  return c;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    if (static_cast<unsigned char>(text[position]) < 0x80)
      ++position;
    else if (detail::decode_long(text, position) == detail::kIllFormed)
      return start;
  }
  return std::string_view::npos;
}

bool is_ascii(std::string_view text) {
  char bits = 0;
  for (char c : text)
    bits |= c;
  return static_cast<unsigned char>(bits) < 0x80;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t invalid; (invalid = find_invalid_utf8(text)) != std::string_view::npos;) {
    out += text.substr(0, invalid);
    out += kReplacement;
    next_code_point(text, invalid);
    text.remove_prefix(invalid);
  }
  return out += text;
}

char32_t previous_code_point(std::string_view text, size_t& position) {
  const size_t end = position;
  const size_t longest = std::min<size_t>(end, 4);
  for (size_t length = 1; length <= longest; ++length) {
    size_t at = end - length;
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
      continue;
    const char32_t c = next_code_point(text.substr(0, end), at);
    if (at != end)
      break;
    position = end - length;
    return c;
  }
  position = end - 1;
  return kReplacementCharacter;
}

void detail::append_long(char32_t c, std::string& text) {
  const int trail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const char32_t mark = 0xFFu << (7 - trail) & 0xFF;  // of the first byte: 0xC0, 0xE0, 0xF0
  text += static_cast<char>(mark | c >> 6 * trail);
  for (int i = trail - 1; i >= 0; --i)
    text += static_cast<char>(0x80 | (c >> 6 * i & 0x3F));
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();)
    out += next_code_point(text, position);
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text)
    append_utf8(c, out);
  return out;
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    next_code_point(text, position);
    characters.push_back(text.substr(start, position - start));
  }
  return characters;
}

std::string_view skip_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

}  // namespace seqconv::internal
