#include "rouge_tokens.h"

#include "porter_stemmer.h"

namespace seqconv::metrics {
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

// The capitals beyond ASCII whose small letter begins with one of ASCII, which
// Python's lower() gives to rouge_score.
constexpr std::string_view kKelvinSign = "\xE2\x84\xAA";  // k
constexpr std::string_view kDottedCapitalI = "\xC4\xB0";  // i and a dot above

}  // namespace

RougeTokenizer::RougeTokenizer(const RougeOptions& options)
    : stem_(options.stem), style_(options.style) {
  if (!options.exceptions.empty())
    irregular_forms_ = IrregularForms(options.exceptions);
}

uint32_t RougeTokenizer::number_of_stem(const std::string& word) {
  std::string stem = word;
  if (stem_ && word.size() > kShortWord) {
    const std::string* base = irregular_forms_.find(word);
    const StemmerRules rules = style_ == RougeStyle::kRouge155
        ? StemmerRules::kRouge155
        : StemmerRules::kNltk;
    stem = base != nullptr ? *base : porter_stem(word, rules);
  }
  const auto next = static_cast<uint32_t>(stems_.size());
  return stems_.emplace(std::move(stem), next).first->second;
}

void RougeTokenizer::end_word(RougeText& out) {
  if (word_.empty())
    return;
  auto found = words_.find(std::string_view(word_));
  if (found == words_.end())
    found = words_.emplace(word_, number_of_stem(word_)).first;
  out.tokens.push_back(found->second);
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
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (const char letter = kLetters[byte]; letter != 0) {
      word_ += letter;
      continue;
    }
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
  end_word(out);
  out.ends.push_back(out.tokens.size());
}

void RougeTokenizer::forget_much() {
  if (words_.size() < kMostNumbers)
    return;
  words_.clear();
  stems_.clear();
}

}  // namespace seqconv::metrics
