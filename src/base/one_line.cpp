#include "base/one_line.h"

#include "base/utf8.h"

namespace seqconv::internal {
namespace {

bool is_plain_ascii(unsigned char byte) {
  return byte >= 0x20 && byte < 0x7F;
}

/// Control characters, and the separators of lines and paragraphs.
bool becomes_blank(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    if (is_plain_ascii(static_cast<unsigned char>(text[position]))) {
      out += text[position++];
      continue;
    }
    const char32_t c = next_code_point(text, position);
    append_utf8(becomes_blank(c) ? U' ' : c, out);
  }
  return out;
}

}  // namespace seqconv::internal
