#include "metrics/tercom_words.h"

#include "base/characters.h"
#include "base/utf8.h"
#include "metrics/spacing.h"

namespace seqconv::internal::metrics {
namespace {

bool is_within(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

/// CJK punctuation, also in full width.
bool is_asian_punctuation(char32_t c) {
  constexpr std::u32string_view kMarks =
      U"\u3001\u3002\u30FB\uFF0E\uFF0C\uFF1F\uFF1A\uFF1B\uFF01\uFF02\uFF08"
      U"\uFF09";
  return is_within(c, 0x3008, 0x3011) || is_within(c, 0x3014, 0x301F) ||
      is_within(c, 0xFF61, 0xFF65) || kMarks.find(c) != kMarks.npos;
}

/// What is a word by itself. sacreBLEU's block of letters and months in circles
/// ends at U+3F22, not U+32FF, and its rule for runs of kana never applies, as
/// it wants them at the start of a line that begins with a blank.
bool is_asian_word(char32_t c) {
  return is_within(c, 0x3200, 0x4DBF) || is_within(c, 0x4E00, 0x9FFF) ||
      is_within(c, 0x31C0, 0x31EF) || is_within(c, 0x2E80, 0x2EFF) ||
      is_within(c, 0xF900, 0xFAFF) || is_within(c, 0xFE30, 0xFE4F) || is_asian_punctuation(c);
}

bool is_removed_punctuation(char32_t c) {
  return std::u32string_view(U".,?:;!\"()").find(c) != std::u32string_view::npos;
}

/// Sets the ending 's apart where a blank follows; then what stands around
/// points and dashes.
std::string normalize(std::string line) {
  replace_all(line, "\n-", "");
  replace_all(line, "\n", " ");
  replace_entities(line);
  std::string text = space_symbols(" " + line + " ");
  replace_all(text, "'s ", " 's ");
  return space_points(text);
}

std::string space_asian_words(std::string_view text) {
  const std::u32string characters = decode_utf8(text);
  return encode_utf8(set_apart(std::u32string_view(characters), is_asian_word));
}

template <class Predicate>
std::string remove_characters(std::string_view text, Predicate is_removed) {
  std::u32string characters = decode_utf8(text);
  std::erase_if(characters, is_removed);
  return encode_utf8(characters);
}

}  // namespace

std::string space_tercom_words(std::string_view line, const TerOptions& options) {
  line = trim_end(line);
  std::string text = options.case_sensitive ? replace_invalid_utf8(line) : to_lower(line);
  if (text.empty())
    return text;
  if (options.normalized) {
    text = normalize(std::move(text));
    if (options.asian_support)
      text = space_asian_words(text);
  }
  if (options.no_punct) {
    text = remove_characters(text, is_removed_punctuation);
    if (options.asian_support)
      text = remove_characters(text, is_asian_punctuation);
  }
  return text;
}

}  // namespace seqconv::internal::metrics
