#include "metrics/missing_words.h"

#include <algorithm>

#include "base/error.h"

namespace seqconv::internal {
namespace {

/// "the hypotheses are Thai, which has no blanks between words: ".
std::string without_blanks(const WordsOf& whose, std::string_view language) {
  return concat(whose.text, " ", language, ", which has no blanks between words: ");
}

}  // namespace

std::string OptionSpelling::spell(std::string_view key, std::string_view value) const {
  if (!table.empty())
    return concat(table, ".", key, value == "true" ? " = true" : concat(" = '", value, "'"));
  std::string flag = concat("--", key);
  std::ranges::replace(flag, '_', '-');
  return value == "true" ? flag : concat(flag, " ", value);
}

std::string missing_words(
    const std::vector<std::string>& lines, const BleuOptions& options, const WordsOf& whose) {
  const std::string_view language = language_without_words(lines, options);
  if (language.empty())
    return "";
  const bool zh = options.style == BleuStyle::kSacreBleu && options.tokenizer == BleuTokenizer::kZh;
  const bool models = whose.options.table.empty();
  std::string others;
  if (language == "Chinese")
    others = models ? ", zh or spm" : " or zh";
  else if (models)
    others = language == "Japanese" ? ", spm or ja-mecab" : " or spm";
  return concat(
      without_blanks(whose, language),
      zh ? "the tokenizer zh finds words in Chinese alone, and BLEU" : "BLEU by blanks",
      " says little; ",
      whose.options.spell("tokenizer", "char"),
      others,
      " finds tokens there");
}

std::string missing_words(
    const std::vector<std::string>& lines, const ChrfOptions& options, const WordsOf& whose) {
  if (options.word_order == 0)
    return "";
  const std::string_view language = unsegmented_language(lines);
  if (language.empty())
    return "";
  return concat(
      without_blanks(whose, language),
      "its word n-grams say little; chrF without ",
      whose.options.table.empty() ? "--word-order" : whose.options.table + ".word_order",
      " counts characters alone");
}

std::string missing_words(
    const std::vector<std::string>& lines, const TerOptions& options, const WordsOf& whose) {
  const std::string_view language = unsegmented_language(lines);
  const bool chinese = language == "Chinese";
  if (language.empty() || (chinese && options.normalized && options.asian_support))
    return "";
  return concat(
      without_blanks(whose, language),
      "TER says little; ",
      chinese ? concat(
                    whose.options.spell("normalized", "true"),
                    " with ",
                    whose.options.spell("asian_support", "true"),
                    " takes Chinese characters for words")
              : "chrf counts characters");
}

std::string missing_words(
    const std::vector<std::string>& lines, const RougeOptions& options, const WordsOf& whose) {
  if (!misses_most_letters(lines, options))
    return "";
  return concat(
      whose.text,
      " mostly of letters that are none to ROUGE, whose words are of ASCII letters and digits "
      "alone: it says little; ",
      whose.options.spell("tokenizer", "unicode"),
      " takes words of all scripts");
}

std::string missing_words(
    const std::vector<std::string>& /*lines*/,
    const ExactOptions& /*options*/,
    const WordsOf& /*whose*/) {
  return "";
}

}  // namespace seqconv::internal
