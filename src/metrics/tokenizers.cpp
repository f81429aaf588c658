#include "metrics/tokenizers.h"

#include <algorithm>
#include <iterator>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "metrics/spacing.h"
#include "metrics/split_tokens.h"
#include "metrics/tokens_13a.h"

namespace seqconv::internal {
namespace {

using metrics::set_apart;
using metrics::space_pairs;

std::string apply_intl(std::string_view line) {
  const auto not_number = [](char32_t c) { return !is_number(c); };
  const std::u32string text = decode_utf8(line);
  std::u32string out =
      space_pairs(std::u32string_view(text), not_number, is_punctuation, {.behind = true});
  out = space_pairs(std::u32string_view(out), is_punctuation, not_number, {.before = true});
  return encode_utf8(set_apart(std::u32string_view(out), is_symbol));
}

/// What sacreBLEU takes for Chinese: first and last of each range. The last one
/// is meant for the ideographs from U+20000 on but takes in signs of all kinds,
/// and scores are compared by it as it is.
bool is_zh_character(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x2E80, 0x2EFF},
      {0x2F00, 0x2FDF},
      {0x2FF0, 0x303F},
      {0x3100, 0x312F},
      {0x31A0, 0x31BF},
      {0x31C0, 0x31EF},
      {0x3200, 0x33FF},
      {0x3400, 0x4DB5},
      {0x4E00, 0x9FBB},
      {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A},
      {0xFA70, 0xFAD9},
      {0xFE10, 0xFE1F},
      {0xFE30, 0xFE4F},
      {0xFF00, 0xFFEF},
      {0x2001, 0x2A6D}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [c](const auto& range) {
    return c >= range.first && c <= range.second;
  });
}

/// The line with blanks around the characters for which `is_apart` holds.
template <class Predicate>
std::string space_characters(std::string_view line, Predicate is_apart) {
  const std::u32string text = decode_utf8(line);
  return encode_utf8(set_apart(std::u32string_view(text), is_apart));
}

/// The line with white space between its tokens.
std::string space_tokens(std::string_view line, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::kIntl:
      return apply_intl(line);
    case BleuTokenizer::kChar:
      return space_characters(line, [](char32_t) { return true; });
    case BleuTokenizer::kZh:
      return metrics::space_points(
          metrics::space_symbols(space_characters(trim_start(line), is_zh_character)));
    case BleuTokenizer::k13a:
    case BleuTokenizer::kNone:
    case BleuTokenizer::kSpm:
    case BleuTokenizer::kJaMecab:
      break;
  }
  fail("the tokenizer '", enum_name(tokenizer), "' needs a model, but got none");
}

}  // namespace

std::vector<std::string_view> metrics::split_tokens(
    std::string_view line, BleuTokenizer tokenizer, WordNumbers& texts) {
  line = trim_end(line);
  if (find_invalid_utf8(line) != std::string_view::npos)
    line = texts.keep(replace_invalid_utf8(line));
  if (tokenizer == BleuTokenizer::k13a)
    return split_13a(line, texts);
  if (tokenizer == BleuTokenizer::kNone)
    return split_words(line);
  return split_words(texts.keep(space_tokens(line, tokenizer)));
}

std::vector<std::string> tokenize(std::string_view line, BleuTokenizer tokenizer) {
  metrics::WordNumbers texts;
  const auto words = metrics::split_tokens(line, tokenizer, texts);
  return {words.begin(), words.end()};
}

std::string split_compounds(std::string_view line) {
  const std::u32string text = decode_utf8(line);
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    const bool compound =
        i + 2 < text.size() && text[i + 1] == '-' && !is_space(text[i]) && !is_space(text[i + 2]);
    if (compound) {
      out += U" ##AT##-##AT## ";
      out += text[i + 2];
      i += 2;
    }
  }
  return encode_utf8(out);
}

}  // namespace seqconv::internal
