#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal::metrics {

// The rules for ASCII work on the bytes of UTF-8, where no other character has
// such a byte; the other ones on code points.

/// Blanks around every character for which `is_apart` holds.
template <class Char, class Predicate>
std::basic_string<Char> set_apart(std::basic_string_view<Char> text, Predicate is_apart) {
  std::basic_string<Char> out;
  out.reserve(text.size() + text.size() / 4);
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_apart(text[i]))
      continue;
    out += text.substr(copied, i - copied);
    (out += Char{' '}, out += text[i]) += Char{' '};
    copied = i + 1;
  }
  return out += text.substr(copied);
}

/// Where space_pairs puts blanks besides the one between the two characters.
struct PairBlanks {
  bool before = false;
  bool behind = false;
};

/// One pass from left to right over pairs of neighbours: where both predicates
/// hold, the blanks go before, between and behind the two, and the scan goes on
/// behind them.
template <class Char, class First, class Second>
std::basic_string<Char> space_pairs(
    std::basic_string_view<Char> text, First is_first, Second is_second, PairBlanks blanks) {
  std::basic_string<Char> out;
  out.reserve(text.size() + text.size() / 4);
  size_t copied = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (!is_first(text[i]) || !is_second(text[i + 1]))
      continue;
    out += text.substr(copied, i - copied);
    if (blanks.before)
      out += Char{' '};
    out += text[i];
    out += Char{' '};
    out += text[++i];
    if (blanks.behind)
      out += Char{' '};
    copied = i + 1;
  }
  return out += text.substr(copied);
}

void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Turns &quot; &amp; &lt; &gt; into what they stand for, in this order.
void replace_entities(std::string& text);

/// Sets apart ASCII that is a token by itself: all but letters, digits and
/// ' - . , and control characters.
std::string space_symbols(std::string_view text);

/// Blanks around points and commas that are not within numbers, and dashes
/// after digits (the last rules of mteval-v13a).
std::string space_points(std::string_view text);

}  // namespace seqconv::internal::metrics
