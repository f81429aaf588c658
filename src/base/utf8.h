#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// UTF-8 as Unicode's table 3-7 has it: overlong forms, surrogates and code points above
/// U+10FFFF are ill-formed. An ill-formed sequence is the longest start of a
/// well-formed one, or else one byte.
namespace seqconv::internal {

/// The code point that stands for ill-formed sequences.
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Position of the first byte that is not UTF-8, or npos when all are.
size_t find_invalid_utf8(std::string_view text);

bool is_ascii(std::string_view text);

/// The text with every ill-formed sequence replaced by one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

namespace detail {
/// Reads a code point that is not ASCII: kIllFormed where there is none.
inline constexpr char32_t kIllFormed = 0xFFFFFFFF;
char32_t decode_long(std::string_view text, size_t& position);
void append_long(char32_t c, std::string& text);
}  // namespace detail

/// Reads the code point at `position` and moves the position behind it. An
/// ill-formed sequence reads as U+FFFD. `position` must be below text.size().
inline char32_t next_code_point(std::string_view text, size_t& position) {
  if (const auto byte = static_cast<unsigned char>(text[position]); byte < 0x80) {
    ++position;
    return byte;
  }
  const char32_t c = detail::decode_long(text, position);
  return c == detail::kIllFormed ? kReplacementCharacter : c;
}

/// Reads the code point that ends in front of `position` and moves the position to its
/// first byte, as next_code_point. `position` must be above 0.
char32_t previous_code_point(std::string_view text, size_t& position);

/// Adds the bytes of a code point, which must be one.
inline void append_utf8(char32_t c, std::string& text) {
  if (c < 0x80)
    text += static_cast<char>(c);
  else
    detail::append_long(c, text);
}

/// Code points of a text; ill-formed sequences read as U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

/// The characters of a text, each as its bytes.
std::vector<std::string_view> split_characters(std::string_view text);

/// Without the byte order mark that may begin a file.
std::string_view skip_byte_order_mark(std::string_view text);

}  // namespace seqconv::internal
