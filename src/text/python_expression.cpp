#include "text/python_expression.h"

#include <algorithm>
#include <array>

namespace seqconv::internal {
namespace {

// Inside a class: the characters of is_space, and all others.
constexpr std::string_view kSpace =
    "\\x{9}-\\x{D}\\x{1C}-\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}"
    "\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view kNoSpace =
    "\\x{0}-\\x{8}\\x{E}-\\x{1B}\\x{21}-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}"
    "\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}"
    "\\x{3001}-\\x{10FFFF}";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hexadecimal(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Reads an expression from its start to its end.
class Rewriter {
 public:
  explicit Rewriter(std::string_view rest) : rest_(rest) {}

  std::string run() {
    while (!rest_.empty()) {
      if (rest_.front() == '\\')
        escape();
      else if (rest_.front() == '[')
        character_class();
      else if (rest_.starts_with("(?#"))
        copy_to(")");
      else if (!open_repetition())
        copy(1);
    }
    return std::move(form_);
  }

 private:
  void copy(size_t count) {
    count = std::min(count, rest_.size());
    form_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }

  /// All to behind `end`, or to the expression's end.
  void copy_to(std::string_view end) {
    const size_t found = rest_.find(end);
    copy(found == std::string_view::npos ? rest_.size() : found + end.size());
  }

  void replace(size_t count, std::string_view form) {
    form_ += form;
    rest_.remove_prefix(count);
  }

  /// A repetition without a least number gets 0; false where there is none.
  bool open_repetition() {
    if (!rest_.starts_with("{,"))
      return false;
    const auto* const end = std::find_if_not(rest_.begin() + 2, rest_.end(), is_digit);
    if (end == rest_.end() || *end != '}')
      return false;
    replace(1, "{0");
    return true;
  }

  void escape() {
    const char kind = rest_.size() > 1 ? rest_[1] : '\\';
    if (kind == 'Q')
      copy_to("\\E");
    else if (kind == 's' || kind == 'S')
      spaces(kind == 's' ? kSpace : kNoSpace);
    else if (kind == 'v')
      replace(2, "\\x{B}");
    else if (kind == 'Z' && !in_class_)
      replace(2, "\\z");
    else if (kind == 'u' || kind == 'U')
      code_point(kind == 'u' ? 4 : 8);
    else
      copy(2);
  }

  void spaces(std::string_view members) {
    replace(2, in_class_ ? "" : "[");
    form_ += members;
    form_ += in_class_ ? "" : "]";
  }

  /// PCRE2 says what is wrong with one that has too few digits.
  void code_point(size_t digits) {
    const std::string_view number = rest_.substr(2, digits);
    if (number.size() < digits || !std::ranges::all_of(number, is_hexadecimal))
      return copy(2);
    form_ += "\\x{";
    form_ += number;
    form_ += "}";
    rest_.remove_prefix(2 + digits);
  }

  void character_class() {
    copy(rest_.starts_with("[^") ? 2 : 1);
    in_class_ = true;
    if (rest_.starts_with(']'))
      copy(1);
    while (!rest_.empty() && rest_.front() != ']') {
      if (rest_.front() == '\\')
        escape();
      else
        copy(named_class());
    }
    in_class_ = false;
    copy(1);
  }

  /// The bytes of a class like [:alpha:]; 1 where there is none.
  size_t named_class() const {
    if (!rest_.starts_with("[:"))
      return 1;
    const size_t end = rest_.find_first_of(":]\\", 2);
    return end != std::string_view::npos && rest_.substr(end).starts_with(":]") ? end + 2 : 1;
  }

  std::string_view rest_;
  bool in_class_ = false;
  std::string form_;
};

}  // namespace

std::string to_pcre2(std::string_view expression) {
  return Rewriter(expression).run();
}

}  // namespace seqconv::internal
