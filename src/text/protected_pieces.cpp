#include "text/protected_pieces.h"

#include <algorithm>

#include "base/characters.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

constexpr size_t kNoEnd = std::string_view::npos;
/// A placeholder's name and format have so many bytes at most: longer texts in brackets are none.
constexpr size_t kLongestName = 64;

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Letters, their marks and digits, but for scripts that are written without blanks: what
/// stands beside those is a word of its own.
bool is_word_character(char32_t c) {
  if (c < 0x80)
    return is_ascii_digit(static_cast<char>(c)) || is_ascii_letter(static_cast<char>(c));
  return (is_letter(c) || is_mark(c) || is_decimal_digit(c)) && script_of(c) == Script::kOther;
}

/// Finds pieces of a text by the place where they begin.
class PieceFinder {
 public:
  explicit PieceFinder(std::string_view text) : text_(text) {}

  /// The ends of pieces that begin at `at`; kNoEnd where none does.
  size_t url(size_t at) const;
  size_t placeholder(size_t at) const;
  size_t number(size_t at) const;
  /// All e-mail addresses.
  std::vector<ProtectedPiece> emails() const;

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool holds(size_t i, std::string_view signs) const {
    return i < text_.size() && signs.find(text_[i]) != kNoEnd;
  }
  size_t skip_digits(size_t i) const {
    while (is_ascii_digit(at(i)))
      ++i;
    return i;
  }
  bool is_behind_word(size_t i) const {
    return i > 0 && is_word_character(previous_code_point(text_, i));
  }
  bool is_before_word(size_t i) const {
    return i < text_.size() && is_word_character(next_code_point(text_, i));
  }
  /// True where `word`, in small letters, stands in either case.
  bool spells(size_t i, std::string_view word) const {
    return i + word.size() <= text_.size() &&
        std::ranges::equal(word, text_.substr(i, word.size()), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
           });
  }

  size_t url_scheme(size_t at) const;
  size_t trim_url(size_t begin, size_t end) const;
  size_t printf_form(size_t at) const;
  size_t conversion(size_t i) const;
  size_t braces(size_t at) const;
  bool is_field(std::string_view content) const;
  size_t digits(size_t i) const;
  size_t digit_group(size_t i) const;
  size_t domain(size_t i) const;

  std::string_view text_;
};

/// The end of a URL's scheme, or of "www.", in front of a letter or digit.
size_t PieceFinder::url_scheme(size_t at) const {
  if (!holds(at, "hHfFwW") || is_behind_word(at))
    return kNoEnd;
  for (const std::string_view scheme : {"http://", "https://", "ftp://", "ftps://", "www."})
    if (spells(at, scheme) && is_before_word(at + scheme.size()))
      return at + scheme.size();
  return kNoEnd;
}

/// The end without punctuation and brackets that belong to the text around.
size_t PieceFinder::trim_url(size_t begin, size_t end) const {
  constexpr std::string_view kOpening = "([{", kClosing = ")]}", kPunctuation = ".,;:!?'*";
  std::array<int64_t, 3> surplus{};  // of closing brackets
  for (const char c : text_.substr(begin, end - begin)) {
    if (const size_t kind = kClosing.find(c); kind != kNoEnd)
      ++surplus[kind];
    else if (const size_t opened = kOpening.find(c); opened != kNoEnd)
      --surplus[opened];
  }
  for (; end > begin; --end) {
    const char last = text_[end - 1];
    if (const size_t kind = kClosing.find(last); kind != kNoEnd) {
      if (surplus[kind] <= 0)
        return end;
      --surplus[kind];
    } else if (const size_t opened = kOpening.find(last); opened != kNoEnd) {
      ++surplus[opened];
    } else if (kPunctuation.find(last) == kNoEnd) {
      return end;
    }
  }
  return end;
}

size_t PieceFinder::url(size_t at) const {
  const size_t begin = url_scheme(at);
  if (begin == kNoEnd)
    return kNoEnd;
  size_t end = begin;
  while (end < text_.size()) {
    size_t next = end;
    const char32_t c = next_code_point(text_, next);
    const bool ends =
        c < 0x80 ? c <= ' ' || c == 0x7F || holds(end, "<>\"`\\^|") : !is_word_character(c);
    if (ends)
      break;
    end = next;
  }
  return trim_url(begin, end);
}

/// The end of flags, width, precision, length and letter of a printf form.
size_t PieceFinder::conversion(size_t i) const {
  while (holds(i, "-+#0'"))
    ++i;
  i = holds(i, "*") ? i + 1 : skip_digits(i);
  if (holds(i, "."))
    i = holds(i + 1, "*") ? i + 2 : skip_digits(i + 1);
  for (int length = 0; length < 2 && holds(i, "hlLqjzt"); ++length)
    ++i;
  return holds(i, "diouxXeEfFgGaAcCsSpn@") ? i + 1 : kNoEnd;
}

/// %%, %d, %1$s, %-5.2f, %(name)s. A sign behind a digit and in front of letters, as in "100%ige",
/// is a percent sign.
size_t PieceFinder::printf_form(size_t at) const {
  if (this->at(at + 1) == '%')
    return at + 2;
  size_t i = at + 1;
  if (this->at(i) == '(') {
    const size_t close = text_.substr(i, kLongestName).find(')');
    if (close == kNoEnd || close == 1 || !is_field(text_.substr(i + 1, close - 1)))
      return kNoEnd;
    return conversion(i + close + 1);
  }
  if (const size_t digits = skip_digits(i); digits > i && this->at(digits) == '$')
    i = digits + 1;
  const size_t end = conversion(i);
  const bool is_percent =
      end != kNoEnd && at > 0 && is_ascii_digit(text_[at - 1]) && is_before_word(end);
  return is_percent ? kNoEnd : end;
}

/// A name, number or path, perhaps with a format behind '!', ':' or ','; or nothing.
bool PieceFinder::is_field(std::string_view content) const {
  const size_t format = std::min(content.find_first_of("!:,"), content.size());
  for (const char c : content.substr(0, format))
    if (!is_ascii_digit(c) && !is_ascii_letter(c) &&
        std::string_view("_.-[]$@/#").find(c) == kNoEnd && static_cast<unsigned char>(c) < 0x80)
      return false;
  return std::ranges::none_of(
      content, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '"'; });
}

/// One to three braces around a field; what two or more hold may have blanks in it.
size_t PieceFinder::braces(size_t at) const {
  size_t count = 0;
  while (count < 3 && this->at(at + count) == '{')
    ++count;
  const size_t begin = std::min(at + count, text_.size());
  const size_t length = text_.substr(begin, kLongestName).find_first_of("{}");
  if (length == kNoEnd || text_.substr(begin + length, count) != std::string_view("}}}", count))
    return kNoEnd;
  const std::string_view content = text_.substr(begin, length);
  const bool fits = count == 1 ? is_field(content) : !is_blank(content);
  return fits ? begin + length + count : kNoEnd;
}

size_t PieceFinder::placeholder(size_t at) const {
  switch (this->at(at)) {
    case '%':
      if (this->at(at + 1) != '{')
        return printf_form(at);
      [[fallthrough]];
    case '$':
    case '#':
      return this->at(at + 1) == '{' && this->at(at + 2) != '}' ? braces(at + 1) : kNoEnd;
    case '{':
      return braces(at);
    default:
      return kNoEnd;
  }
}

/// The end of decimal digits, of any script.
size_t PieceFinder::digits(size_t i) const {
  while (i < text_.size()) {
    size_t next = i;
    if (!is_decimal_digit(next_code_point(text_, next)))
      return i;
    i = next;
  }
  return i;
}

/// The end of a separator and the digits behind it; kNoEnd where there are none. Blanks that do
/// not break stand in front of three digits.
size_t PieceFinder::digit_group(size_t i) const {
  if (i >= text_.size())
    return kNoEnd;
  size_t next = i;
  const char32_t c = next_code_point(text_, next);
  if (c == 0xA0 || c == 0x202F) {
    const size_t end = skip_digits(next);
    return end == next + 3 ? end : kNoEnd;
  }
  if (std::u32string_view(U".,:/'\u2019\u066B\u066C").find(c) == std::u32string_view::npos)
    return kNoEnd;
  const size_t end = digits(next);
  return end > next ? end : kNoEnd;
}

size_t PieceFinder::number(size_t at) const {
  size_t i = at;
  if (holds(i, "+-"))
    ++i;
  else if (text_.substr(i).starts_with("\u2212"))
    i += std::string_view("\u2212").size();
  size_t end = digits(i);
  if (end == i || is_behind_word(at) || (at > 0 && text_[at - 1] == '_'))
    return kNoEnd;
  for (size_t next = digit_group(end); next != kNoEnd; next = digit_group(end))
    end = next;
  return end;
}

/// The end of a domain: labels with dots between them, the last one two letters or more; kNoEnd
/// where there is none.
size_t PieceFinder::domain(size_t i) const {
  size_t end = kNoEnd;
  for (bool is_first = true;; is_first = false, ++i) {
    const size_t begin = i;
    size_t letters = kNoEnd;  // where those end that begin the label
    while (i < text_.size()) {
      size_t next = i;
      const char32_t c = next_code_point(text_, next);
      if (!is_word_character(c) && c != '-')
        break;
      if (letters == kNoEnd && (c == '-' || is_decimal_digit(c)))
        letters = c == '-' ? i : begin;
      i = next;
    }
    letters = std::min(letters, i);
    if (!is_first && letters >= begin + 2)
      end = letters;
    if (i == begin || at(i) != '.')
      return end;
  }
}

std::vector<ProtectedPiece> PieceFinder::emails() const {
  std::vector<ProtectedPiece> found;
  size_t least = 0;
  for (size_t sign = text_.find('@'); sign != kNoEnd; sign = text_.find('@', sign + 1)) {
    size_t begin = sign, first = sign;
    while (first > least) {
      size_t previous = first;
      const char32_t c = previous_code_point(text_, previous);
      const bool is_word = is_word_character(c);
      if (!is_word && !(c < 0x80 && std::string_view("._+-").find(static_cast<char>(c)) != kNoEnd))
        break;
      first = previous;
      if (is_word)
        begin = first;
    }
    const size_t end = begin < sign ? domain(sign + 1) : kNoEnd;
    least = sign + 1;
    if (end == kNoEnd)
      continue;
    found.push_back({begin, end, PieceKind::kEmails});
    least = end;
  }
  return found;
}

}  // namespace

std::vector<ProtectedPiece> find_pieces(std::string_view text, const PieceKinds& kinds) {
  if (kinds.empty())
    return {};
  const PieceFinder finder(text);
  const auto wants = [&](PieceKind kind) { return std::ranges::find(kinds, kind) != kinds.end(); };
  std::vector<ProtectedPiece> emails;
  if (wants(PieceKind::kEmails))
    emails = finder.emails();
  auto email = emails.begin();
  const auto email_end = [&](size_t at) {
    while (email != emails.end() && email->begin < at)
      ++email;
    return email != emails.end() && email->begin == at ? email->end : kNoEnd;
  };
  const bool urls = wants(PieceKind::kUrls), placeholders = wants(PieceKind::kPlaceholders),
             numbers = wants(PieceKind::kNumbers);
  std::vector<ProtectedPiece> found;
  const auto take = [&](size_t at, size_t end, PieceKind kind) {
    if (end != kNoEnd)
      found.push_back({at, end, kind});
    return end != kNoEnd;
  };
  for (size_t at = 0; at < text.size();) {
    const bool is_inside = (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;  // a character
    const bool takes = !is_inside &&
        ((urls && take(at, finder.url(at), PieceKind::kUrls)) ||
         take(at, email_end(at), PieceKind::kEmails) ||
         (placeholders && take(at, finder.placeholder(at), PieceKind::kPlaceholders)) ||
         (numbers && take(at, finder.number(at), PieceKind::kNumbers)));
    at = takes ? found.back().end : at + 1;
  }
  return found;
}

}  // namespace seqconv::internal
