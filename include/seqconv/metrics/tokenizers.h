#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/base/enum_names.h"

namespace seqconv {

/// How BLEU cuts a line into tokens; names and rules are sacreBLEU's.
enum class BleuTokenizer {
  k13a,   ///< mteval-v13a: Western punctuation, numbers kept whole
  kNone,  ///< at white space
  kIntl,  ///< mteval-v14: all Unicode punctuation and symbols
  kChar,  ///< every character is a token
};
template <>
struct EnumNames<BleuTokenizer> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, BleuTokenizer>>(
          {{"13a", BleuTokenizer::k13a},
           {"none", BleuTokenizer::kNone},
           {"intl", BleuTokenizer::kIntl},
           {"char", BleuTokenizer::kChar}});
};

/// The tokens of a line of UTF-8 (ill-formed bytes read as U+FFFD).
std::vector<std::string> tokenize(
    std::string_view line,
    BleuTokenizer tokenizer);

/// The line with hyphens inside compounds set apart, as the English-German
/// papers did before BLEU: every non-space, hyphen, non-space becomes
/// "x ##AT##-##AT## y" in one pass from left to right, in which a character is
/// used once: "ab-cd-ef" is split twice, "a-b-c" once.
std::string split_compounds(std::string_view line);

}  // namespace seqconv
