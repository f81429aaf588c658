#include "base/one_line.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace seqconv::internal {
namespace {

bool is_plain_ascii(unsigned char byte) {
  return byte >= 0x20 && byte < 0x7F;
}

bool becomes_blank(UChar32 c) {
  const int8_t category = u_charType(c);
  return category == U_CONTROL_CHAR || category == U_LINE_SEPARATOR ||
      category == U_PARAGRAPH_SEPARATOR;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t position = 0;
  while (position < text.size()) {
    const size_t start = position;
    if (is_plain_ascii(static_cast<unsigned char>(text[position]))) {
      out += text[position++];
      continue;
    }
    UChar32 c = 0;
    U8_NEXT(text.data(), position, text.size(), c);
    if (c < 0)
      out += "\xEF\xBF\xBD";  // U+FFFD
    else if (becomes_blank(c))
      out += ' ';
    else
      out += text.substr(start, position - start);
  }
  return out;
}

}  // namespace seqconv::internal
