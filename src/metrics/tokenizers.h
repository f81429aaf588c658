#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"

namespace seqconv::internal {

/// The ways in which BLEU cuts a line into tokens; names and rules are
/// sacreBLEU's.
enum class BleuTokenizer {
  k13a,      ///< mteval-v13a: Western punctuation, numbers kept whole
  kNone,     ///< at white space
  kIntl,     ///< mteval-v14: all Unicode punctuation and symbols
  kChar,     ///< every character is a token
  kZh,       ///< every Chinese character is a token, the rest nearly as with 13a
  kSpm,      ///< the pieces of a SentencePiece model, see LineTokenizer
  kJaMecab,  ///< MeCab's words of Japanese, see LineTokenizer
};
template <>
struct EnumNames<BleuTokenizer> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, BleuTokenizer>>(
      {{"13a", BleuTokenizer::k13a},
       {"none", BleuTokenizer::kNone},
       {"intl", BleuTokenizer::kIntl},
       {"char", BleuTokenizer::kChar},
       {"zh", BleuTokenizer::kZh},
       {"spm", BleuTokenizer::kSpm},
       {"ja-mecab", BleuTokenizer::kJaMecab}});
};

/// A tokenizer that stands above this layer: a SentencePiece model, or MeCab.
struct LineTokenizer {
  /// The tokens of a line of UTF-8; white space within one separates tokens.
  /// Safe to call from several threads.
  std::function<std::vector<std::string>(std::string_view)> split;
  std::string name;  ///< for the signature: "flores200"
};

/// The tokens of a line of UTF-8 (ill-formed bytes read as U+FFFD). Error for
/// kSpm and kJaMecab, which need a model.
std::vector<std::string> tokenize(std::string_view line, BleuTokenizer tokenizer);

/// The line with hyphens inside compounds set apart, as the English-German
/// papers did before BLEU: every non-space, hyphen, non-space becomes
/// "x ##AT##-##AT## y" in one pass from left to right, in which a character is
/// used once: "ab-cd-ef" is split twice, "a-b-c" once.
std::string split_compounds(std::string_view line);

/// "Chinese", "Japanese", "Thai", "Lao", "Khmer", "Burmese" or "Tibetan" where
/// most letters of the lines are of scripts that have no blanks between words,
/// and few blanks stand between them, so that tokenizers that split at blanks
/// (13a, none, intl) find no words; else "".
std::string_view unsegmented_language(const std::vector<std::string>& lines);

}  // namespace seqconv::internal
