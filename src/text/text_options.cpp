#include "text/text_options.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/special_ids.h"
#include "text/line_reader.h"
#include "text/moses.h"
#include "text/segmenter.h"

namespace seqconv::internal {
namespace {

template <class T>
void need_range(bool holds, const std::string& key, const char* range, const T& value) {
  if (!holds)
    fail_usage(key, " must be ", range, ", but got ", value);
}

struct Language {
  const char* key;
  const std::string& code;
};

std::array<Language, 3> languages_of(const TextOptions& options) {
  return {
      {{"source_language", options.source_language},
       {"target_language", options.target_language},
       {"language", options.language}}};
}

/// The key of a dictionary when none is left to build, else null.
const char* given_dictionary(const TextOptions& options) {
  if (!options.dictionary.empty())
    return "dictionary";
  const bool source = !options.source_dictionary.empty();
  const bool target = !options.target_dictionary.empty();
  if (options.joined ? source || target : source && target)
    return source ? "source_dictionary" : "target_dictionary";
  return nullptr;
}

/// UsageError when a vocabulary that nothing is left out of has limits.
void check_limits(const TextOptions& options, const OptionNames& key) {
  if (options.min_count == 1 && options.max_vocabulary == 0)
    return;
  const std::string limit = key(options.min_count != 1 ? "min_count" : "max_vocabulary");
  if (const char* dictionary = given_dictionary(options))
    fail_usage(
        limit, " has no effect with ", key(dictionary), ": the dictionary is taken as it is");
  if (options.subword == Subword::kBytes)
    fail_usage(
        limit,
        " has no effect with ",
        key.setting("subword", enum_name(options.subword)),
        ": its vocabulary is all 256 bytes");
}

/// UsageError when Moses tokens are wanted where they make no sense, or their
/// settings without them.
void check_tokenizer(const TextOptions& options, const OptionNames& key) {
  const bool moses = options.tokenizer == Tokenizer::kMoses;
  const auto needs_moses = [&](const char* name) {
    fail_usage(
        key(name),
        " needs ",
        key.setting("tokenizer", enum_name(Tokenizer::kMoses)),
        concat(", but that is '", enum_name(options.tokenizer), "'"));
  };
  if (!moses && options.moses_escape)
    needs_moses("moses_escape");
  if (!moses && options.moses_split_dashes)
    needs_moses("moses_split_dashes");
  for (const Language& language : languages_of(options)) {
    if (language.code.empty())
      continue;
    if (!moses)
      needs_moses(language.key);
    check_language(language.code, key(language.key));
  }
  if (moses && (options.subword == Subword::kCharacters || options.subword == Subword::kBytes))
    fail_usage(
        key.setting("tokenizer", enum_name(options.tokenizer)),
        " makes words, but ",
        key.setting("subword", enum_name(options.subword)),
        " reads blanks and signs as they are; use none, bpe or sentencepiece");
}

/// UsageError for wishes about a SentencePiece model that is not trained, and
/// for symbols that cannot be pieces of one.
void check_sentencepiece_training(const TextOptions& options, const OptionNames& key) {
  const char* const wish = options.sentencepiece_byte_fallback ? "sentencepiece_byte_fallback"
                                                               : "sentencepiece_user_symbols";
  if (!options.sentencepiece_byte_fallback && options.sentencepiece_user_symbols.empty())
    return;
  if (options.subword != Subword::kSentencePiece)
    fail_usage(
        key(wish),
        " needs ",
        key.setting("subword", enum_name(Subword::kSentencePiece)),
        concat(", but that is '", enum_name(options.subword), "'"));
  if (!options.sentencepiece_model.empty())
    fail_usage(
        key(wish),
        " is for a model that is trained, but ",
        key.setting("sentencepiece_model", options.sentencepiece_model),
        " is taken as it is");
  std::set<std::string> seen(kSpecialSymbols.begin(), kSpecialSymbols.end());
  if (options.sentencepiece_byte_fallback)
    seen.insert(byte_symbols().begin(), byte_symbols().end());
  for (const std::string& symbol : options.sentencepiece_user_symbols) {
    if (symbol.empty() || symbol.find(' ') != std::string::npos || clean_line(symbol) != symbol)
      fail_usage(
          key("sentencepiece_user_symbols"),
          " must be text without blanks, but got '",
          symbol,
          "'");
    if (!seen.insert(symbol).second)
      fail_usage(
          key("sentencepiece_user_symbols"),
          " must be symbols that are not there yet, but got '",
          symbol,
          "'");
  }
}

/// UsageError when a kind is named twice.
void check_protected(const TextOptions& options, const OptionNames& key) {
  std::set<PieceKind> seen;
  for (const PieceKind kind : options.protect)
    if (!seen.insert(kind).second)
      fail_usage(
          key("protect"), " must name each kind once, but '", enum_name(kind), "' comes twice");
}

}  // namespace

void TextOptions::validate(const OptionNames& key) const {
  const auto check_file = [&](const char* file_key, const std::string& file, Subword wanted) {
    if (!file.empty() && subword != wanted)
      fail_usage(
          key(file_key),
          " needs ",
          key.setting("subword", enum_name(wanted)),
          concat(", but that is '", enum_name(subword), "'"));
  };
  check_file("bpe_codes", bpe_codes, Subword::kBpe);
  check_file("sentencepiece_model", sentencepiece_model, Subword::kSentencePiece);
  need_range(
      subword_size >= 1 && subword_size <= 1'000'000,
      key("subword_size"),
      "from 1 to 1000000",
      subword_size);
  need_range(
      character_coverage >= 0.98 && character_coverage <= 1,
      key("character_coverage"),
      "from 0.98 to 1",
      character_coverage);
  need_range(min_count >= 1, key("min_count"), ">= 1", min_count);
  need_range(
      max_vocabulary == 0 || max_vocabulary > kSpecialIds,
      key("max_vocabulary"),
      "0 (no limit) or > 4, as four symbols are special",
      max_vocabulary);
  check_limits(*this, key);
  check_tokenizer(*this, key);
  check_sentencepiece_training(*this, key);
  check_protected(*this, key);
}

void check_languages(const TextOptions& options, const std::vector<std::string>& wanted) {
  for (const Language& language : languages_of(options)) {
    const bool needed = options.tokenizer == Tokenizer::kMoses &&
        std::find(wanted.begin(), wanted.end(), language.key) != wanted.end();
    if (needed && language.code.empty())
      fail_usage(
          "text.tokenizer = 'moses' needs text.",
          language.key,
          ", the code of the text's language such as de, but that is empty");
    if (!needed && !language.code.empty())
      fail_usage(
          "text.",
          language.key,
          " = '",
          language.code,
          "' has no effect here: ",
          wanted.size() == 1
              ? "a language model has text.language"
              : "a translation model has text.source_language and text.target_language");
  }
}

}  // namespace seqconv::internal
