#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "base/characters.h"
#include "base/utf8.h"
#include "text/moses.h"
#include "text/moses_characters.h"

namespace seqconv::internal {
namespace {

using namespace moses;
using Words = std::vector<std::string_view>;

struct Entity {
  std::string_view name;
  char sign;
};

/// &bar; &bra; &ket; are those of older versions of Moses.
constexpr auto kEntities = std::to_array<Entity>(
    {{"&amp;", '&'},
     {"&#124;", '|'},
     {"&lt;", '<'},
     {"&gt;", '>'},
     {"&apos;", '\''},
     {"&quot;", '"'},
     {"&#91;", '['},
     {"&#93;", ']'},
     {"&bar;", '|'},
     {"&bra;", '['},
     {"&ket;", ']'}});

void append_unescaped(std::string_view word, std::string& out) {
  for (size_t i = 0; i < word.size();) {
    const auto* found = kEntities.end();
    if (word[i] == '&')
      found = std::find_if(kEntities.begin(), kEntities.end(), [&](const Entity& entity) {
        return word.substr(i).starts_with(entity.name);
      });
    out += found == kEntities.end() ? word[i] : found->sign;
    i += found == kEntities.end() ? 1 : found->name.size();
  }
}

/// The words of a text, those around "@-@" as one, escaped signs themselves.
std::string restore_signs(std::string_view text) {
  std::string out;
  bool glue = true;           // the next word belongs to the last one
  bool after_hyphen = false;  // of two in a row the second one stays
  for (std::string_view word : split_words(text)) {
    if (word == "@-@" && !after_hyphen) {
      out += '-';
      glue = after_hyphen = true;
      continue;
    }
    if (!glue)
      out += ' ';
    append_unescaped(word, out);
    glue = after_hyphen = false;
  }
  return out;
}

bool holds_special_signs(std::string_view text) {
  return text.find('&') != std::string_view::npos || text.find("@-@") != std::string_view::npos;
}

char32_t first_of(std::string_view word) {
  size_t position = 0;
  return next_code_point(word, position);
}

char32_t last_of(std::string_view word) {
  size_t start = word.size() - 1;
  while (start > 0 && word.size() - start < 4 &&
         (static_cast<unsigned char>(word[start]) & 0xC0) == 0x80)
    --start;
  return first_of(word.substr(start));
}

/// Tells whether every character of a word is among `signs` or fits `also`.
template <class Also>
bool consists_of(std::string_view word, std::u32string_view signs, Also also) {
  for (size_t position = 0; position < word.size();) {
    const char32_t c = next_code_point(word, position);
    if (signs.find(c) == std::u32string_view::npos && !also(c))
      return false;
  }
  return true;
}

bool consists_of(std::string_view word, std::u32string_view signs) {
  return consists_of(word, signs, [](char32_t) { return false; });
}

bool is_digits(std::string_view word) {
  return consists_of(word, U"0123456789");
}

/// Currency signs and opening brackets, which stand before a word.
bool is_opening(std::string_view word) {
  return consists_of(word, U"([{\u00BF\u00A1", is_currency);
}

bool is_closing(std::string_view word) {
  return consists_of(word, U",.?!:;\\%}])");
}

bool is_quote(std::string_view word) {
  return consists_of(word, U"'\"\u201E\u201C`");
}

bool is_curly_quote(std::string_view word) {
  return consists_of(word, U"\u201E\u201C\u201D");
}

/// The combining signs between Indic letters are no letters here.
bool is_letter(char32_t c) {
  return Characters("en").has(c, kAlpha) && !is_joiner(c);
}

/// Tells whether a word begins and ends with a letter, so that no rule wants
/// it.
bool is_plain(std::string_view word) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(word.front()) && is_letter(word.back());
}

/// Puts the words of one text together.
class Joiner {
 public:
  Joiner(std::string_view language, Words words) : language_(language), words_(std::move(words)) {}

  std::string join() {
    for (at_ = 0; at_ < words_.size(); ++at_)
      add(words_[at_]);
    text_.erase(0, text_.find_first_not_of(' '));
    return std::move(text_);
  }

 private:
  bool speaks(std::string_view language) const { return language_ == language; }

  std::string_view next_word() const {
    return at_ + 1 < words_.size() ? words_[at_ + 1] : std::string_view();
  }
  /// The word `distance` before the present one, or nothing.
  std::string_view before(size_t distance) const {
    return at_ >= distance ? words_[at_ - distance] : std::string_view();
  }

  void add_apart(std::string_view word) {
    if (!joined_)
      text_ += ' ';
    text_ += word;
    joined_ = false;
  }
  void add_to_last(std::string_view word) {
    text_ += word;
    joined_ = false;
  }
  void add_to_next(std::string_view word) {
    add_apart(word);
    joined_ = true;
  }

  bool ends_in_apostrophe(std::string_view word) const {
    return word.ends_with('\'') && word.size() > 1 &&
        is_letter(last_of(word.substr(0, word.size() - 1)));
  }
  bool is_contraction(std::string_view word) const {
    return speaks("en") && at_ > 0 && word.starts_with('\'') && word.size() > 1 &&
        is_letter(first_of(word.substr(1)));
  }
  bool is_czech_decimal(std::string_view word) const {
    return speaks("cs") && at_ > 1 && is_digits(word) && (before(1) == "." || before(1) == ",") &&
        is_digits(before(2));
  }
  bool is_elision(std::string_view word) const {
    return (speaks("fr") || speaks("it") || speaks("ga")) && ends_in_apostrophe(word) &&
        !next_word().empty() && is_letter(first_of(next_word()));
  }

  void add(std::string_view word) {
    if (is_plain(word)) {
      add_apart(word);
      return;
    }
    if (is_cjk(first_of(word)) && !speaks("ko")) {
      if (at_ > 0 && is_cjk(last_of(before(1))))
        add_to_last(word);
      else
        add_apart(word);
    } else if (is_opening(word)) {
      add_to_next(word);
    } else if (is_closing(word)) {
      if (speaks("fr") && word.size() == 1 &&
          std::string_view("?!:;\\%").find(word) != std::string_view::npos)
        text_ += ' ';
      add_to_last(word);
    } else if (is_contraction(word) || is_czech_decimal(word)) {
      add_to_last(word);
    } else if (is_elision(word)) {
      add_to_next(word);
    } else if (is_quote(word)) {
      add_quote(word);
    } else {
      add_apart(word);
    }
  }

  /// A quotation mark opens when an even number of its kind has come.
  void add_quote(std::string_view word) {
    int64_t& count = quotes_[std::string(is_curly_quote(word) ? "\"" : word)];
    if (speaks("cs") && word == "\u201E")
      count = 0;
    if (speaks("cs") && word == "\u201C")
      count = 1;
    const bool possessive = speaks("en") && word == "'" && before(1).ends_with('s');
    if (count % 2 == 0 && possessive) {
      add_to_last(word);
      return;
    }
    if (count % 2 == 0)
      add_to_next(word);
    else
      add_to_last(word);
    ++count;
  }

  std::string_view language_;
  Words words_;
  size_t at_ = 0;
  std::string text_;
  bool joined_ = false;  ///< the next word follows without a blank
  std::unordered_map<std::string, int64_t> quotes_;
};

}  // namespace

MosesDetokenizer::MosesDetokenizer(const std::string& language) : language_(language) {
  check_language(language, "the language of a Moses detokenizer");
}

std::string MosesDetokenizer::detokenize(std::string_view tokens) const {
  std::string restored;
  if (holds_special_signs(tokens))
    tokens = restored = restore_signs(tokens);
  return Joiner(language_, split_words(tokens)).join();
}

std::string MosesDetokenizer::unescape(std::string_view token) {
  if (token == "@-@")
    return "-";
  std::string out;
  append_unescaped(token, out);
  return out;
}

}  // namespace seqconv::internal
