#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "base/utf8.h"
#include "text/moses.h"
#include "text/moses_characters.h"
#include "text/moses_prefixes.h"

namespace seqconv::internal {
namespace {

using namespace moses;

/// A condition on what stands beside a sign.
enum class Neighbour {
  kAnything,  ///< also nothing
  kEnd,       ///< the end of the line
  kAlpha,
  kNotAlpha,
  kAlnum,
  kNumber,
  kNotNumber,
  kNotAlphaOrNumber,
  kLetterS,
};

/// A sign between neighbours is replaced. The rules are those of Moses, which
/// applies each to the whole line before the next; the neighbours that a rule
/// asks for are used up then, and no neighbours of another sign any more, so
/// that "rock'n'roll" becomes "rock 'n'roll".
struct SignRule {
  Neighbour left;
  Neighbour right;
  std::u32string_view replacement;
  bool keeps_right = false;  ///< the right one is not used up
};

constexpr auto kCommaRules = std::to_array<SignRule>(
    {{Neighbour::kNotNumber, Neighbour::kAnything, U" , "},
     {Neighbour::kAnything, Neighbour::kNotNumber, U" , "},
     {Neighbour::kNumber, Neighbour::kEnd, U" , "}});

constexpr auto kDashRules = std::to_array<SignRule>(
    {{Neighbour::kAlnum, Neighbour::kAlnum, U" @-@ ", /*keeps_right=*/true}});

constexpr auto kEnglishApostrophes = std::to_array<SignRule>(
    {{Neighbour::kNotAlpha, Neighbour::kNotAlpha, U" ' "},
     {Neighbour::kNotAlphaOrNumber, Neighbour::kAlpha, U" ' "},
     {Neighbour::kAlpha, Neighbour::kNotAlpha, U" ' "},
     {Neighbour::kAlpha, Neighbour::kAlpha, U" '"},
     {Neighbour::kNumber, Neighbour::kLetterS, U" '"}});

constexpr auto kFrenchApostrophes = std::to_array<SignRule>(
    {{Neighbour::kNotAlpha, Neighbour::kNotAlpha, U" ' "},
     {Neighbour::kNotAlpha, Neighbour::kAlpha, U" ' "},
     {Neighbour::kAlpha, Neighbour::kNotAlpha, U" ' "},
     {Neighbour::kAlpha, Neighbour::kAlpha, U"' "}});

constexpr auto kOtherApostrophes =
    std::to_array<SignRule>({{Neighbour::kAnything, Neighbour::kAnything, U" ' "}});

std::span<const SignRule> apostrophes_of(std::string_view language) {
  if (language == "en")
    return kEnglishApostrophes;
  if (language == "fr" || language == "it")
    return kFrenchApostrophes;
  return kOtherApostrophes;
}

/// A run of dots becomes a token; a single dot is left to the abbreviations.
void split_runs_of_dots(std::u32string& text) {
  if (text.find(U"..") == std::u32string::npos)
    return;
  std::u32string out;
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find_first_not_of(U'.', i), text.size());
    if (end < i + 2) {
      out += text[i++];
      continue;
    }
    out += U' ';
    out.append(text, i, end - i);
    out += U' ';
    i = end;
  }
  text = std::move(out);
}

std::string_view escaped(char32_t c) {
  switch (c) {
    case U'&':
      return "&amp;";
    case U'|':
      return "&#124;";
    case U'<':
      return "&lt;";
    case U'>':
      return "&gt;";
    case U'\'':
      return "&apos;";
    case U'"':
      return "&quot;";
    case U'[':
      return "&#91;";
    case U']':
      return "&#93;";
    default:
      return {};
  }
}

}  // namespace

/// The rules of one language; every step takes linear time.
class MosesTokenizer::Rules {
 public:
  Rules(const std::string& language, const MosesOptions& options)
      : options_(options),
        characters_(language),
        prefixes_(prefixes_of(language)),
        apostrophes_(apostrophes_of(language)) {}

  std::string tokenize(std::string_view line) const {
    std::u32string text = split_signs(line);
    if (options_.split_dashes)
      apply(kDashRules, U'-', text);
    split_runs_of_dots(text);
    apply(kCommaRules, U',', text);
    apply(apostrophes_, U'\'', text);
    return write_tokens(text);
  }

 private:
  /// The characters of a line, blanks for white space, with blanks around
  /// every sign that no later rule looks at.
  std::u32string split_signs(std::string_view line) const {
    std::u32string text;
    text.reserve(line.size() + line.size() / 4 + 8);
    bool after_space = false;
    size_t blanks = 0;  // not yet written, as none ends the text
    for (size_t position = 0; position < line.size();) {
      const auto byte = static_cast<unsigned char>(line[position]);
      const char32_t c =
          byte < 0x80 ? (++position, char32_t{byte}) : next_code_point(line, position);
      const uint8_t properties = characters_.properties(c);
      if (properties & kSpace) {
        blanks += !after_space && !text.empty() ? 1 : 0;
        after_space = true;
        continue;
      }
      after_space = false;
      if (properties & kJunk)
        continue;
      text.append(blanks, U' ');
      blanks = 0;
      const bool stays =
          (properties & kAlnum) || c == U'.' || c == U'\'' || c == U'`' || c == U',' || c == U'-';
      if (stays) {
        text += c;
      } else {
        text += U' ';
        text += c;
        text += U' ';
      }
    }
    return text;
  }

  bool fits(Neighbour wanted, std::u32string_view text, size_t at) const {
    if (wanted == Neighbour::kAnything)
      return true;
    if (at >= text.size())
      return wanted == Neighbour::kEnd;
    const char32_t c = text[at];
    switch (wanted) {
      case Neighbour::kAlpha:
        return characters_.has(c, kAlpha);
      case Neighbour::kNotAlpha:
        return !characters_.has(c, kAlpha);
      case Neighbour::kAlnum:
        return characters_.has(c, kAlnum);
      case Neighbour::kNumber:
        return characters_.has(c, kNumber);
      case Neighbour::kNotNumber:
        return !characters_.has(c, kNumber);
      case Neighbour::kNotAlphaOrNumber:
        return !characters_.has(c, kAlpha | kNumber);
      case Neighbour::kLetterS:
        return c == U's';
      case Neighbour::kAnything:
      case Neighbour::kEnd:
        break;
    }
    return false;
  }

  /// Replaces the signs of `text` that fit the rule.
  void apply(const SignRule& rule, char32_t sign, std::u32string& text) const {
    const bool uses_left = rule.left != Neighbour::kAnything;
    const bool uses_right =
        rule.right != Neighbour::kAnything && rule.right != Neighbour::kEnd && !rule.keeps_right;
    std::u32string out;
    size_t unused = 0;  // the first character that no match has used
    size_t at = text.find(sign);
    for (; at != std::u32string::npos; at = text.find(sign, at + 1)) {
      if (at < unused || (uses_left && at == unused))
        continue;
      if ((uses_left && !fits(rule.left, text, at - 1)) || !fits(rule.right, text, at + 1))
        continue;
      out.append(text, unused, at - unused);
      out += rule.replacement;
      unused = at + 1;
      if (uses_right)
        out += text[unused++];
    }
    if (unused == 0)
      return;
    out.append(text, unused);
    text = std::move(out);
  }

  void apply(std::span<const SignRule> rules, char32_t sign, std::u32string& text) const {
    if (text.find(sign) == std::u32string::npos)
      return;
    for (const SignRule& rule : rules)
      apply(rule, sign, text);
  }

  /// Tells whether the dot behind `prefix` belongs to it; `next` begins the
  /// next token, or is 0 when there is none.
  bool keeps_dot(std::u32string_view prefix, char32_t next) const {
    const auto is_alpha = [&](char32_t c) { return characters_.has(c, kAlpha); };
    if (next != 0 && characters_.has(next, kLower))
      return true;
    if (prefix.find(U'.') != std::u32string_view::npos &&
        std::any_of(prefix.begin(), prefix.end(), is_alpha))
      return true;
    std::string word;
    for (char32_t c : prefix)
      append_utf8(c, word);
    if (prefixes_.before_numbers.contains(word))
      return next >= U'0' && next <= U'9';
    return prefixes_.always.contains(word);
  }

  /// Counts the characters at the end of a token that are tokens of their own:
  /// a full stop, or ".'" at the end of the line.
  size_t loose_end(std::u32string_view token, char32_t next) const {
    if (next == 0 && token.ends_with(U".'"))
      return 2;
    // A token that begins with two dots is a run of them.
    if (token.size() < 2 || token.back() != U'.' || token.starts_with(U".."))
      return 0;
    return keeps_dot(token.substr(0, token.size() - 1), next) ? 0 : 1;
  }

  void write(std::u32string_view token, std::string& out) const {
    if (token.empty())
      return;
    if (!out.empty())
      out += ' ';
    for (char32_t c : token) {
      const auto instead = options_.escape ? escaped(c) : std::string_view();
      if (instead.empty())
        append_utf8(c, out);
      else
        out += instead;
    }
  }

  std::string write_tokens(std::u32string_view text) const {
    std::string out;
    out.reserve(text.size() + text.size() / 8 + 8);
    size_t begin = text.find_first_not_of(U' ');
    while (begin < text.size()) {
      const size_t end = std::min(text.find(U' ', begin), text.size());
      const size_t next = std::min(text.find_first_not_of(U' ', end), text.size());
      const std::u32string_view token = text.substr(begin, end - begin);
      const size_t loose = loose_end(token, next < text.size() ? text[next] : char32_t{0});
      write(token.substr(0, token.size() - loose), out);
      for (char32_t c : token.substr(token.size() - loose))
        write({&c, 1}, out);
      begin = next;
    }
    return out;
  }

  MosesOptions options_;
  Characters characters_;
  Prefixes prefixes_;
  std::span<const SignRule> apostrophes_;
};

void check_language(std::string_view language, const std::string& key) {
  const bool letters =
      std::all_of(language.begin(), language.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!letters || language.size() < 2 || language.size() > 3)
    fail_usage(
        key,
        " must be a language's code of two or three small letters, such as en, de or fr, but got '",
        language,
        "'");
}

MosesTokenizer::MosesTokenizer(const std::string& language, const MosesOptions& options) {
  check_language(language, "the language of a Moses tokenizer");
  rules_ = std::make_unique<Rules>(language, options);
}

MosesTokenizer::~MosesTokenizer() = default;

std::string MosesTokenizer::tokenize(std::string_view line) const {
  return rules_->tokenize(line);
}

}  // namespace seqconv::internal
