#include "text/sentences.h"

#include <sentence_table.inc>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/characters.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

/// Values of Sentence_Break, in the order of the table (tools/make_sentence_table.py).
enum class SentenceBreak : uint8_t {
  kOther,
  kCarriageReturn,
  kLineFeed,
  kSeparator,
  kExtend,
  kFormat,
  kSpace,
  kLower,
  kUpper,
  kOtherLetter,
  kNumeric,
  kAmbiguousTerm,  // a full stop
  kSentenceTerm,
  kClose,
  kContinue,
};

SentenceBreak break_of(char32_t c) {
  if (c > 0x10FFFF)
    return SentenceBreak::kOther;
  const size_t block = kSentenceBlocks[c / kSentenceBlockSize];
  return static_cast<SentenceBreak>(
      kSentenceClasses[block * kSentenceBlockSize + c % kSentenceBlockSize]);
}

bool is_term(SentenceBreak c) {
  return c == SentenceBreak::kAmbiguousTerm || c == SentenceBreak::kSentenceTerm;
}

bool ends_paragraph(SentenceBreak c) {
  return c == SentenceBreak::kCarriageReturn || c == SentenceBreak::kLineFeed ||
      c == SentenceBreak::kSeparator;
}

bool is_ignored(SentenceBreak c) {
  return c == SentenceBreak::kExtend || c == SentenceBreak::kFormat;
}

/// "pt" of "pt-BR".
std::string_view base_of(std::string_view language) {
  return language.substr(0, language.find_first_of("-_"));
}

/// Languages that write "3rd" as "3.".
constexpr std::string_view kOrdinals[] = {
    "cs",
    "da",
    "de",
    "et",
    "fi",
    "hr",
    "hu",
    "is",
    "lv",
    "nb",
    "nn",
    "no",
    "pl",
    "sk",
    "sl",
    "sr",
    "tr"};

std::span<const std::string_view> abbreviations_of(std::string_view language) {
  for (const Abbreviations& own : kAbbreviations)
    if (own.language == language)
      return own.texts;
  return {};
}

/// Reads a text from its beginning and knows, at each character, whether a sentence ends in
/// front of it. The numbers of rules are those of UAX #29.
class SentenceSplitter {
 public:
  SentenceSplitter(std::string_view text, std::string_view language)
      : text_(text),
        abbreviations_(abbreviations_of(base_of(language))),
        has_ordinals_(std::ranges::find(kOrdinals, base_of(language)) != std::end(kOrdinals)) {
    for (const std::string_view one : abbreviations_)
      longest_ = std::max(longest_, one.size());
  }

  std::vector<std::string_view> sentences() {
    std::vector<std::string_view> sentences;
    size_t begin = 0;
    for (size_t position = 0; position < text_.size();) {
      const size_t here = position;
      SentenceBreak c = break_of(next_code_point(text_, position));
      const bool is_first = here == begin || ends_paragraph(last_);
      if (is_ignored(c) && !is_first) {  // SB5
        last_ = c;
        continue;
      }
      if (is_ignored(c))
        c = SentenceBreak::kOther;
      if (here > begin && is_end(c, here, begin)) {
        sentences.push_back(text_.substr(begin, here - begin));
        begin = here;
      }
      step(c, position);
    }
    if (begin < text_.size())
      sentences.push_back(text_.substr(begin));
    return sentences;
  }

 private:
  /// Behind a term: the parts of SATerm Close* Sp* that were read.
  enum class Phase { kNone, kTerm, kClose, kSpace };

  bool is_end(SentenceBreak c, size_t here, size_t begin) const {
    if (ends_paragraph(last_))  // SB3, SB4
      return !(last_ == SentenceBreak::kCarriageReturn && c == SentenceBreak::kLineFeed);
    if (phase_ == Phase::kNone)  // SB998
      return false;
    if (is_term(c) || c == SentenceBreak::kContinue)  // SB8a
      return false;
    if (c == SentenceBreak::kSpace || ends_paragraph(c))  // SB9, SB10
      return false;
    if (c == SentenceBreak::kClose && phase_ != Phase::kSpace)  // SB9
      return false;
    if (is_ambiguous_ && goes_on(c, here, begin))
      return false;
    return true;  // SB11
  }

  /// Tells what an ambiguous term alone is no end for.
  bool goes_on(SentenceBreak c, size_t here, size_t begin) const {
    if (phase_ == Phase::kTerm && c == SentenceBreak::kNumeric)  // SB6
      return true;
    if (phase_ == Phase::kTerm && c == SentenceBreak::kUpper &&
        (before_term_ == SentenceBreak::kUpper || before_term_ == SentenceBreak::kLower))  // SB7
      return true;
    return continues_in_lower_case(here) ||
        (!is_closed_ && (is_abbreviation(begin) || is_ordinal(begin)));
  }

  /// SB8. Looks no further than to the next term, so that nothing is read thrice.
  bool continues_in_lower_case(size_t position) const {
    while (position < text_.size()) {
      const SentenceBreak c = break_of(next_code_point(text_, position));
      if (c == SentenceBreak::kLower)
        return true;
      if (c == SentenceBreak::kUpper || c == SentenceBreak::kOtherLetter || is_term(c) ||
          ends_paragraph(c))
        return false;
    }
    return false;
  }

  /// Tells whether the term is within an abbreviation, or its end: "Z. B." has two.
  bool is_abbreviation(size_t begin) const {
    const size_t first = term_end_ - std::min(longest_, term_end_ - begin);
    for (size_t start = first; start < term_end_; ++start) {
      const std::string_view word = text_.substr(start, term_end_ - start);
      auto found = std::ranges::lower_bound(abbreviations_, word);
      while (found != abbreviations_.end() && found->starts_with(word) &&
             !text_.substr(start).starts_with(*found))
        ++found;
      if (found == abbreviations_.end() || !found->starts_with(word))
        continue;
      size_t before = start;
      const char32_t c = start == begin ? U' ' : previous_code_point(text_, before);
      if (!is_letter(c) && !is_number(c))
        return true;
    }
    return false;
  }

  /// One or two digits, a word of their own, in front of the term.
  bool is_ordinal(size_t begin) const {
    if (!has_ordinals_)
      return false;
    size_t start = term_end_ - 1;
    const auto is_digit = [&](size_t at) { return text_[at] >= '0' && text_[at] <= '9'; };
    while (start > begin && is_digit(start - 1))
      --start;
    const size_t digits = term_end_ - 1 - start;
    return text_[term_end_ - 1] == '.' && (digits == 1 || digits == 2) &&
        (start == begin || text_[start - 1] == ' ');
  }

  void step(SentenceBreak c, size_t end) {
    if (is_term(c)) {
      phase_ = Phase::kTerm;
      is_ambiguous_ = c == SentenceBreak::kAmbiguousTerm;
      is_closed_ = false;
      before_term_ = significant_;
      term_end_ = end;
    } else if (c == SentenceBreak::kClose && (phase_ == Phase::kTerm || phase_ == Phase::kClose)) {
      phase_ = Phase::kClose;
      is_closed_ = true;
    } else if (c == SentenceBreak::kSpace && phase_ != Phase::kNone) {
      phase_ = Phase::kSpace;
    } else {
      phase_ = Phase::kNone;
    }
    last_ = significant_ = c;
  }

  std::string_view text_;
  std::span<const std::string_view> abbreviations_;
  bool has_ordinals_;
  size_t longest_ = 0;
  Phase phase_ = Phase::kNone;
  bool is_ambiguous_ = false;
  bool is_closed_ = false;  // something of Close came behind the term
  size_t term_end_ = 0;
  SentenceBreak before_term_ = SentenceBreak::kOther;
  SentenceBreak significant_ = SentenceBreak::kOther;  // the last character that is not ignored
  SentenceBreak last_ = SentenceBreak::kOther;
};

}  // namespace

std::vector<std::string_view> split_sentences(std::string_view text, std::string_view language) {
  return SentenceSplitter(text, language).sentences();
}

std::vector<std::string_view> split_long(std::string_view sentence, size_t most) {
  std::vector<std::string_view> parts;
  while (!sentence.empty()) {
    size_t end = 0, behind_space = 0, count = 0;
    bool is_space_before = false;
    while (end < sentence.size()) {
      size_t next = end;
      const char32_t c = next_code_point(sentence, next);
      if (is_space_before && !is_space(c))
        behind_space = end;
      is_space_before = is_space(c);
      if (++count > most && !is_space_before && !is_mark(c))
        break;
      end = next;
    }
    if (end < sentence.size() && behind_space > 0)
      end = behind_space;
    parts.push_back(sentence.substr(0, end));
    sentence.remove_prefix(end);
  }
  return parts;
}

}  // namespace seqconv::internal
