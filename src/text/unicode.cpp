#include "text/unicode.h"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/made_once.h"
#include "base/one_line.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// As next_code_point, but negative for an ill-formed sequence.
UChar32 decode(std::string_view text, size_t& position) {
  UChar32 c = 0;
  U8_NEXT(text.data(), position, text.size(), c);
  return c;
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

using CaseMap = std::unique_ptr<const UCaseMap, void (*)(const UCaseMap*)>;

const UCaseMap* root_case_map() {
  static MadeOnce<CaseMap> map;
  const auto open = [] {
    UErrorCode status = U_ZERO_ERROR;
    CaseMap opened(ucasemap_open("", 0, &status), [](const UCaseMap* known) {
      ucasemap_close(const_cast<UCaseMap*>(known));
    });
    SEQCONV_CHECK(U_SUCCESS(status), "ICU cannot open its root case map: ", u_errorName(status));
    return opened;
  };
  return map.get(open).get();
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const size_t start = position;
    if (decode(text, position) < 0)
      return start;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t position = 0;
  while (position < text.size()) {
    const size_t start = position;
    if (decode(text, position) < 0)
      out += kReplacement;
    else
      out += text.substr(start, position - start);
  }
  return out;
}

char32_t next_code_point(std::string_view text, size_t& position) {
  const UChar32 c = decode(text, position);
  return c < 0 ? char32_t{0xFFFD} : static_cast<char32_t>(c);
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  size_t position = 0;
  while (position < text.size()) {
    const size_t start = position;
    decode(text, position);
    characters.push_back(text.substr(start, position - start));
  }
  return characters;
}

bool is_space(char32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

bool is_blank(std::string_view text) {
  size_t position = 0;
  while (position < text.size())
    if (!is_space(next_code_point(text, position)))
      return false;
  return true;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t position = 0;
  size_t begin = 0;
  while (position < text.size()) {
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

std::string_view trim_end(std::string_view text) {
  size_t end = 0;
  for (size_t position = 0; position < text.size();)
    if (!is_space(next_code_point(text, position)))
      end = position;
  return text.substr(0, end);
}

std::string_view skip_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

std::string to_lower(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  std::string out(text);
  if (std::all_of(text.begin(), text.end(), is_ascii)) {
    for (char& c : out)
      if (c >= 'A' && c <= 'Z')
        c = static_cast<char>(c - 'A' + 'a');
    return out;
  }
  SEQCONV_CHECK(
      text.size() < std::numeric_limits<int32_t>::max() / 4,
      "a line must have less than 512 MB, but has ",
      text.size(),
      " bytes");
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    const int32_t length = ucasemap_utf8ToLower(
        root_case_map(),
        out.data(),
        static_cast<int32_t>(out.size()),
        text.data(),
        static_cast<int32_t>(text.size()),
        &status);
    const bool fits = static_cast<size_t>(length) <= out.size();
    out.resize(static_cast<size_t>(length));
    if (fits)
      return out;
  }
}

std::string clean_line(std::string_view line) {
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return one_line(line);
}

}  // namespace seqconv::internal
