#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/exact.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"

/// Texts in which a metric finds no words, so that its scores say little.
namespace seqconv::internal {

/// The spelling of options in messages.
struct OptionSpelling {
  /// "": the command line's, "--tokenizer char"; else that of a configuration,
  /// "metrics.bleu.tokenizer = 'char'", with this before the key.
  std::string table{};

  std::string spell(std::string_view key, std::string_view value) const;
};

/// The owner of the words, and the spelling of options.
struct WordsOf {
  std::string_view text;  ///< "the hypotheses are"
  OptionSpelling options{};
};

/// Says what is wrong and which option helps, where words of the lines are none
/// to the metric with its options: "the hypotheses are Chinese, which ...".
/// Else "".
std::string missing_words(
    const std::vector<std::string>& lines, const BleuOptions& options, const WordsOf& whose);
std::string missing_words(
    const std::vector<std::string>& lines, const ChrfOptions& options, const WordsOf& whose);
std::string missing_words(
    const std::vector<std::string>& lines, const TerOptions& options, const WordsOf& whose);
std::string missing_words(
    const std::vector<std::string>& lines, const RougeOptions& options, const WordsOf& whose);
/// Nothing: lines are compared as they are.
std::string missing_words(
    const std::vector<std::string>& lines, const ExactOptions& options, const WordsOf& whose);

}  // namespace seqconv::internal
