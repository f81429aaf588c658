#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/option_names.h"
#include "text/protected_pieces.h"

namespace seqconv::internal {

/// Says how lines become symbols.
enum class Subword {
  kNone,           ///< the line is split at blanks
  kBpe,            ///< subword-nmt merges on words split at blanks
  kSentencePiece,  ///< SentencePiece on the raw line
  kCharacters,     ///< a symbol a character, blanks among them
  kBytes,          ///< a symbol a byte of the UTF-8 line, blanks among them
};
template <>
struct EnumNames<Subword> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Subword>>(
      {{"none", Subword::kNone},
       {"bpe", Subword::kBpe},
       {"sentencepiece", Subword::kSentencePiece},
       {"characters", Subword::kCharacters},
       {"bytes", Subword::kBytes}});
};

/// SentencePiece's model families.
enum class SentencePieceKind { kUnigram, kBpe };
template <>
struct EnumNames<SentencePieceKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, SentencePieceKind>>(
      {{"unigram", SentencePieceKind::kUnigram}, {"bpe", SentencePieceKind::kBpe}});
};

/// The tool that splits lines into words before anything else does.
enum class Tokenizer {
  kNone,   ///< nothing: the text is taken as it is
  kMoses,  ///< text/moses.h, by the language of the side
};
template <>
struct EnumNames<Tokenizer> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Tokenizer>>(
      {{"none", Tokenizer::kNone}, {"moses", Tokenizer::kMoses}});
};

/// The [text] section: everything that turns raw text into ids.
struct TextOptions {
  Tokenizer tokenizer = Tokenizer::kNone;
  std::string source_language;
  std::string target_language;
  std::string language;
  bool moses_escape = false;
  bool moses_split_dashes = false;
  Subword subword = Subword::kSentencePiece;
  int64_t subword_size = 8000;
  std::string bpe_codes;
  std::string sentencepiece_model;
  SentencePieceKind sentencepiece_kind = SentencePieceKind::kUnigram;
  double character_coverage = 0.9995;
  bool sentencepiece_byte_fallback = false;
  std::vector<std::string> sentencepiece_user_symbols;
  bool subword_fallback = true;
  bool joined = true;
  bool lowercase = false;
  std::string source_dictionary;
  std::string target_dictionary;
  std::string dictionary;
  int64_t min_count = 1;
  int64_t max_vocabulary = 0;
  PieceKinds protect;

  template <class Visitor>
  void visit(Visitor& v) {
    v("tokenizer",
      tokenizer,
      R"(none (raw or already tokenised text) or moses; what is decoded is put together again)");
    v("source_language", source_language, "moses: code of the source, such as de, en or fr");
    v("target_language", target_language, "moses: code of the target, such as de, en or fr");
    v("language", language, "moses: code of a language model's text");
    v("moses_escape", moses_escape, "moses: inside the model, & is &amp; and so on");
    v("moses_split_dashes", moses_split_dashes, "moses: inside the model, a-b is a @-@ b");
    v("subword",
      subword,
      R"(What a symbol is: none (a word), bpe, sentencepiece, characters or bytes)");
    v("subword_size",
      subword_size,
      R"(Number of merges (bpe) or pieces (sentencepiece) to learn, 1 to 1,000,000)");
    v("bpe_codes", bpe_codes, "File of subword-nmt codes, empty = learn them");
    v("sentencepiece_model",
      sentencepiece_model,
      "File of a SentencePiece model, empty = train one");
    v("sentencepiece_kind", sentencepiece_kind, "What SentencePiece trains: unigram or bpe");
    v("character_coverage",
      character_coverage,
      "Share of characters that SentencePiece must cover, 0.98 to 1");
    v("sentencepiece_byte_fallback",
      sentencepiece_byte_fallback,
      R"(Train SentencePiece with 256 pieces more, the bytes of characters that it does not cover)");
    v("sentencepiece_user_symbols",
      sentencepiece_user_symbols,
      "Train SentencePiece with these as pieces that are never split");
    v("subword_fallback",
      subword_fallback,
      R"(bpe and sentencepiece: the vocabulary has all characters of the text, and pieces that it lacks are split again)");
    v("joined", joined, "One vocabulary and subword model for both sides");
    v("lowercase", lowercase, "Lower-case both sides first");
    v("source_dictionary", source_dictionary, "dict.txt of the source, empty = build it");
    v("target_dictionary", target_dictionary, "dict.txt of the target, empty = build it");
    v("dictionary", dictionary, "dict.txt of a language model, empty = build it");
    v("min_count", min_count, "Symbols that come less often than this become <unk>, at least 1");
    v("max_vocabulary",
      max_vocabulary,
      R"(Most symbols of a vocabulary, four special ones counted: above 4, or 0 = no limit)");
    v("protect",
      protect,
      R"(Pieces that come out as they went in: placeholders, urls, emails, numbers)");
  }

  /// Tells whether pieces that the vocabulary lacks are split again: as
  /// subword_fallback says, where there are pieces.
  bool falls_back() const {
    return subword_fallback && (subword == Subword::kBpe || subword == Subword::kSentencePiece);
  }

  /// UsageError for values out of range and for keys that contradict each
  /// other; messages have these names. Which languages must be there depends on
  /// the task: see check_languages.
  void validate(const OptionNames& names = "text") const;
};

/// UsageError unless the languages fit the tokenizer: moses needs each of
/// `wanted` ("source_language", ...), every other language must be empty.
void check_languages(const TextOptions& options, const std::vector<std::string>& wanted);

}  // namespace seqconv::internal
