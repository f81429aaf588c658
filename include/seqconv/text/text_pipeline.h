#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/base/options.h"
#include "seqconv/text/vocabulary.h"

namespace seqconv {

/// How lines become symbols.
enum class Subword {
  kNone,           ///< the line is split at blanks
  kBpe,            ///< subword-nmt merges on words split at blanks
  kSentencePiece,  ///< SentencePiece on the raw line
  kCharacters,     ///< a symbol a character, blanks among them
  kBytes,          ///< a symbol a byte of the UTF-8 line, blanks among them
};
template <>
struct EnumNames<Subword> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, Subword>>(
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
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, SentencePieceKind>>(
          {{"unigram", SentencePieceKind::kUnigram},
           {"bpe", SentencePieceKind::kBpe}});
};

/// The [text] section: everything that turns raw text into ids.
struct TextOptions {
  Subword subword = Subword::kSentencePiece;
  int64_t subword_size = 8000;
  std::string bpe_codes;
  std::string sentencepiece_model;
  SentencePieceKind sentencepiece_kind = SentencePieceKind::kUnigram;
  double character_coverage = 0.9995;
  bool joined = true;
  bool lowercase = false;
  std::string source_dictionary;
  std::string target_dictionary;
  std::string dictionary;
  int64_t min_count = 1;
  int64_t max_vocabulary = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    v("subword",
      subword,
      "What a symbol is: none (a word), bpe, sentencepiece, characters or "
      "bytes");
    v("subword_size",
      subword_size,
      "Number of merges (bpe) or pieces (sentencepiece) to learn");
    v("bpe_codes", bpe_codes, "Existing subword-nmt codes (else learned)");
    v("sentencepiece_model",
      sentencepiece_model,
      "Existing SentencePiece model (else trained)");
    v("sentencepiece_kind", sentencepiece_kind, "unigram or bpe");
    v("character_coverage",
      character_coverage,
      "Share of characters that SentencePiece must cover");
    v("joined", joined, "One vocabulary and subword model for both sides");
    v("lowercase", lowercase, "Lower-case both sides first");
    v("source_dictionary", source_dictionary, "Existing dict.txt (else built)");
    v("target_dictionary", target_dictionary, "Existing dict.txt (else built)");
    v("dictionary",
      dictionary,
      "Existing dict.txt of a language model (else built)");
    v("min_count", min_count, "Symbols rarer than this become <unk>");
    v("max_vocabulary", max_vocabulary, "Largest vocabulary, 0 = no limit");
  }

  /// UsageError for values out of range and for keys that contradict each
  /// other; `path` prefixes the keys in messages.
  void validate(const std::string& path = "text") const;
};

class Segmenter;  // text/segmenter.h: one for each Subword

/// Raw line <-> ids, for a language model or one side of a translation model.
class TextPipeline {
 public:
  TextPipeline(
      std::shared_ptr<const Segmenter> segmenter,
      std::shared_ptr<const Vocabulary> vocabulary,
      bool lowercase);

  /// Symbols of a line: cleaned (see clean_line in text/unicode.h),
  /// lower-cased where the options say so, split into subwords.
  std::vector<std::string> segment(std::string_view line) const;
  /// Gives these symbols to `take` one by one; a view is gone after its call.
  void visit_symbols(
      std::string_view line,
      const std::function<void(std::string_view)>& take) const;
  /// Ids of a line without </s>. An empty line gives no ids, nor does one of
  /// blanks only, but for characters and bytes, which count blanks. Text that
  /// spells <s>, <pad> or </s> is unknown, never the special id.
  std::vector<int32_t> encode(std::string_view line) const;
  /// Text of ids; </s>, <s> and <pad> are left out, subwords joined. Unknown
  /// symbols print as <unk>. Valid UTF-8, but for bytes that break off within a
  /// character. Error for ids outside the vocabulary.
  std::string decode(const std::vector<int32_t>& ids) const;
  /// The symbols of ids, joined by blanks, as the model sees them.
  std::string symbols(const std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Segmenter& segmenter() const { return *segmenter_; }

 private:
  std::shared_ptr<const Segmenter> segmenter_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  bool lowercase_;
};

/// Both sides of a translation model, as stored in its folder.
struct TranslationText {
  TextOptions options;
  std::shared_ptr<const TextPipeline> source;
  std::shared_ptr<const TextPipeline> target;
  /// Raw lines for the self-test of load().
  std::vector<std::string> source_samples;
  std::vector<std::string> target_samples;

  /// Learns (or loads, where the options name files) subwords and vocabularies
  /// from the training files. Vocabularies count the symbols of all training
  /// lines, in one streaming pass; where nothing is left to be learned, files
  /// give samples alone and may be missing. With `joined`, one dictionary named
  /// by either key serves both sides. UsageError for contradictory options and
  /// for a language model's `dictionary`, Error with file and line for bad
  /// text.
  static TranslationText create(
      const TextOptions& options,
      const std::vector<std::string>& source_files,
      const std::vector<std::string>& target_files);

  /// Writes vocabulary and subword files into `folder` and returns the "text"
  /// object of config.json: the options that matter, the names of the files
  /// and, as a self-test, a few raw samples with their ids.
  Json save(const std::filesystem::path& folder) const;

  /// Reads what save() wrote and re-encodes the samples; Error when one id
  /// differs ("wrong vocabulary for this model"), and for the text of a
  /// language model. File names in `text` must stay inside `folder`.
  static TranslationText load(
      const std::filesystem::path& folder,
      const Json& text);
};

}  // namespace seqconv
