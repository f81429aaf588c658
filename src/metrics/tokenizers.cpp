#include "seqconv/metrics/tokenizers.h"

#include <unicode/uchar.h>

#include "characters.h"

namespace seqconv {
namespace {

using metrics::decode_utf8;
using metrics::encode_utf8;

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

/// ASCII that 13a always sets apart: all but letters, digits and ' - . , and
/// control characters.
bool is_13a_symbol(char32_t c) {
  return c >= ' ' && c < 0x7F && !u_isalnum(static_cast<UChar32>(c)) &&
      c != '\'' && c != '-' && c != '.' && c != ',';
}

bool is_point(char32_t c) {
  return c == '.' || c == ',';
}

bool is_number(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0;
}

bool is_punctuation(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK) != 0;
}

bool is_symbol(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_S_MASK) != 0;
}

/// Blanks around every character for which `is_apart` holds.
template <class Predicate>
std::u32string set_apart(std::u32string_view text, Predicate is_apart) {
  std::u32string out;
  for (char32_t c : text) {
    if (is_apart(c))
      (out += U' ', out += c) += U' ';
    else
      out += c;
  }
  return out;
}

/// One pass from left to right over pairs of neighbours: where both predicates
/// hold, the blanks asked for go before, between and behind the two, and the
/// scan goes on behind them.
template <class First, class Second>
std::u32string space_pairs(
    std::u32string_view text,
    First is_first,
    Second is_second,
    bool blank_before,
    bool blank_behind) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !is_first(text[i]) || !is_second(text[i + 1])) {
      out += text[i];
      continue;
    }
    if (blank_before)
      out += U' ';
    out += text[i];
    out += U' ';
    out += text[++i];
    if (blank_behind)
      out += U' ';
  }
  return out;
}

void replace_all(
    std::string& text,
    std::string_view from,
    std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

std::u32string apply_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  const auto not_digit = [](char32_t c) { return !is_digit(c); };
  const auto is_dash = [](char32_t c) { return c == '-'; };
  std::u32string out = set_apart(decode_utf8(" " + text + " "), is_13a_symbol);
  out = space_pairs(
      out,
      not_digit,
      is_point,
      /*blank_before=*/false,
      /*blank_behind=*/true);
  out = space_pairs(
      out,
      is_point,
      not_digit,
      /*blank_before=*/true,
      /*blank_behind=*/false);
  return space_pairs(
      out,
      is_digit,
      is_dash,
      /*blank_before=*/false,
      /*blank_behind=*/true);
}

std::u32string apply_intl(std::string_view line) {
  const auto not_number = [](char32_t c) { return !is_number(c); };
  std::u32string out = space_pairs(
      decode_utf8(line),
      not_number,
      is_punctuation,
      /*blank_before=*/false,
      /*blank_behind=*/true);
  out = space_pairs(
      out,
      is_punctuation,
      not_number,
      /*blank_before=*/true,
      /*blank_behind=*/false);
  return set_apart(out, is_symbol);
}

/// The line without white space at its end.
std::string_view trim_end(std::string_view line) {
  const std::u32string text = decode_utf8(line);
  size_t end = text.size();
  while (end > 0 && metrics::is_space(text[end - 1]))
    --end;
  const size_t dropped = encode_utf8(text.substr(end)).size();
  return line.substr(0, line.size() - dropped);
}

std::u32string spaced(std::string_view line, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return apply_13a(line);
    case BleuTokenizer::kNone:
      return decode_utf8(line);
    case BleuTokenizer::kIntl:
      return apply_intl(line);
    case BleuTokenizer::kChar:
      return set_apart(decode_utf8(line), [](char32_t) { return true; });
  }
  fail("unknown tokenizer ", static_cast<int>(tokenizer));
}

}  // namespace

std::vector<std::string> tokenize(
    std::string_view line,
    BleuTokenizer tokenizer) {
  const std::u32string text = spaced(trim_end(line), tokenizer);
  std::vector<std::string> tokens;
  for (std::u32string_view word : metrics::split_words(text))
    tokens.push_back(encode_utf8(word));
  return tokens;
}

std::string split_compounds(std::string_view line) {
  const std::u32string text = decode_utf8(line);
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    const bool compound = i + 2 < text.size() && text[i + 1] == '-' &&
        !metrics::is_space(text[i]) && !metrics::is_space(text[i + 2]);
    if (compound) {
      out += U" ##AT##-##AT## ";
      out += text[i + 2];
      i += 2;
    }
  }
  return encode_utf8(out);
}

}  // namespace seqconv
