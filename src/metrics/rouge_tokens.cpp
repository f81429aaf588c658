#include "metrics/rouge_tokens.h"

#include "base/characters.h"
#include "base/utf8.h"
#include "metrics/porter_stemmer.h"

namespace seqconv::internal::metrics {
namespace {

constexpr size_t kShortWord = 3;  // and shorter: has no stem of its own
constexpr size_t kMostNumbers = 1 << 20;

/// By byte: a letter or digit of a word, small, or 0.
constexpr std::array<char, 256> kLetters = [] {
  std::array<char, 256> letters{};
  for (int c = '0'; c <= '9'; ++c)
    letters[static_cast<size_t>(c)] = static_cast<char>(c);
  for (int c = 'a'; c <= 'z'; ++c) {
    letters[static_cast<size_t>(c)] = static_cast<char>(c);
    letters[static_cast<size_t>(c - 'a' + 'A')] = static_cast<char>(c);
  }
  return letters;
}();

bool is_ascii_word_byte(char c) {
  return kLetters[static_cast<unsigned char>(c)] != 0;
}

// The capitals beyond ASCII whose small letter begins with one of ASCII, which
// Python's lower() gives to rouge_score.
constexpr std::string_view kKelvinSign = "\xE2\x84\xAA";  // k
constexpr std::string_view kDottedCapitalI = "\xC4\xB0";  // i and a dot above

}  // namespace

RougeTokenizer::RougeTokenizer(const RougeOptions& options)
    : stem_(options.stem), style_(options.style), kind_(options.tokenizer) {
  if (!options.exceptions.empty())
    irregular_forms_ = IrregularForms(options.exceptions);
}

std::string RougeTokenizer::stem_of(const std::string& word) const {
  if (!stem_ || word.size() <= kShortWord || !is_ascii(word))
    return word;
  if (const std::string* base = irregular_forms_.find(word))
    return *base;
  const StemmerRules rules =
      style_ == RougeStyle::kRouge155 ? StemmerRules::kRouge155 : StemmerRules::kNltk;
  return porter_stem(word, rules);
}

void RougeTokenizer::take_run(std::string_view letters) {
  word_.resize(word_.size() + letters.size());
  char* out = word_.data() + word_.size() - letters.size();
  for (char c : letters)
    *out++ = kLetters[static_cast<unsigned char>(c)];
}

void RougeTokenizer::end_word(RougeText& out) {
  if (word_.empty())
    return;
  const uint32_t word = words_.of_copy(word_);
  if (word == stem_numbers_.size())
    stem_numbers_.push_back(stems_.of_copy(stem_of(word_)));
  out.tokens.push_back(stem_numbers_[word]);
  word_.clear();
}

/// Takes a letter that only rouge_score knows and returns its bytes, or 0.
size_t RougeTokenizer::take_letter(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with(kKelvinSign)) {
    word_ += 'k';
    return kKelvinSign.size();
  }
  if (rest.starts_with(kDottedCapitalI)) {
    word_ += 'i';
    return kDottedCapitalI.size();
  }
  return 0;
}

void RougeTokenizer::split(std::string_view text, RougeText& out) {
  out.tokens.clear();
  out.ends.clear();
  if (kind_ == RougeWords::kUnicode)
    split_unicode(text, out);
  else
    split_ascii(text, out);
  end_word(out);
  out.ends.push_back(out.tokens.size());
}

void RougeTokenizer::split_unicode(std::string_view text, RougeText& out) {
  bool alone = false;  // whether the word is one character and its marks
  for (char32_t c : decode_utf8(to_lower(text))) {
    const bool mark = is_mark(c);
    if (!mark && !is_letter(c) && !is_number(c)) {
      end_word(out);
      if (c == '\n')
        out.ends.push_back(out.tokens.size());
      continue;
    }
    const bool unsegmented = script_of(c) != Script::kOther;
    if (!mark && (alone || unsegmented))
      end_word(out);
    if (!mark)
      alone = unsegmented;
    word_ += encode_utf8({&c, 1});
  }
}

void RougeTokenizer::split_ascii(std::string_view text, RougeText& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i;
    while (end < text.size() && is_ascii_word_byte(text[end]))
      ++end;
    take_run(text.substr(i, end - i));
    if (end == text.size())
      break;
    i = end;
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool foreign = byte >= 0x80 && style_ == RougeStyle::kRougeScore;
    if (const size_t taken = foreign ? take_letter(text, i) : 0; taken > 0) {
      i += taken - 1;
      if (taken == kKelvinSign.size())
        continue;  // the dot above "i" ends a word
    }
    end_word(out);
    if (byte == '\n')
      out.ends.push_back(out.tokens.size());
  }
}

void RougeTokenizer::forget_much() {
  if (words_.count() < kMostNumbers)
    return;
  words_ = {};
  stems_ = {};
  stem_numbers_.clear();
}

}  // namespace seqconv::internal::metrics

namespace seqconv::internal {

bool misses_most_letters(const std::vector<std::string>& lines, const RougeOptions& options) {
  if (options.tokenizer == RougeWords::kUnicode)
    return false;
  int64_t missed = 0;
  int64_t known = 0;
  for (const std::string& line : lines)
    for (char32_t c : decode_utf8(line))
      if (is_letter(c) || is_mark(c))
        ++(c < 0x80 ? known : missed);
  return missed > known;
}

}  // namespace seqconv::internal
