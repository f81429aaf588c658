#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/preparation.h"
#include "text/text_options.h"

namespace seqconv::internal {

/// Stands for a blank in symbols of SentencePiece and of characters: U+2581.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";

/// Takes symbols one by one.
using SymbolVisitor = std::function<void(std::string_view)>;

/// Splits clean lines (see clean_line) into symbols and puts them together
/// again. Safe to use from several threads.
class Segmenter {
 public:
  virtual ~Segmenter() = default;

  /// The symbols of a line. Empty lines have none, nor do blank ones, but for
  /// characters and bytes, which count every blank. No symbol is empty or holds
  /// a blank (U+0020).
  virtual std::vector<std::string> split(std::string_view line) const = 0;
  /// Gives the symbols of split(line) to `take` one by one, so that a text of
  /// one long line needs no list of them; a view is gone after its call.
  virtual void visit(std::string_view line, const SymbolVisitor& take) const {
    for (const std::string& symbol : split(line))
      take(symbol);
  }
  /// The text of symbols, which may include ones that split() never gives.
  virtual std::string join(const std::vector<std::string>& symbols) const = 0;

  /// This segmenter for a vocabulary: symbols that it lacks are split again
  /// into ones that it has, where that can be. Null for kinds whose symbols
  /// have no parts.
  virtual std::shared_ptr<const Segmenter> within(const HasSymbol& vocabulary) const {
    return nullptr;
  }
  /// Lists what a symbol of split() may in the end be split into by within():
  /// the symbols of its characters. None for kinds without within(), and for
  /// symbols that are never split.
  virtual std::vector<std::string> characters(const std::string& symbol) const { return {}; }
  /// Symbols that a vocabulary must have whatever the text: all bytes where
  /// bytes stand for the unknown, and what the user has defined.
  virtual std::vector<std::string> required() const { return {}; }

  /// The text that a symbol of split() stands for, without marks of blanks and joiners; of
  /// a byte the byte.
  virtual std::string surface(const std::string& symbol) const { return symbol; }

  virtual Subword kind() const = 0;
  /// Content of the model's file in a model folder; empty for kNone,
  /// kCharacters and kBytes, which need none.
  virtual std::string model() const = 0;
};

/// Symbols are the words between white space.
std::shared_ptr<const Segmenter> make_word_segmenter();
/// Symbols are pieces of words between white space, with "@@" after each piece
/// but a word's last. Pieces of known words come from a cache.
std::shared_ptr<const Segmenter> make_bpe_segmenter(Bpe bpe);
/// Symbols are the pieces of a SentencePiece model, given as the bytes of its
/// file; Error when it is not one. `name` is for messages.
std::shared_ptr<const Segmenter> make_sentencepiece_segmenter(
    const std::string& model, const std::string& name);
/// Symbols are the code points of the line, the blank (U+0020) as U+2581 as in
/// SentencePiece, so that a U+2581 of the text reads as a blank. join() puts
/// text together again and leaves symbols of other kinds as they are.
std::shared_ptr<const Segmenter> make_character_segmenter();
/// Symbols are the bytes of the line, spelled <0xHH> with two upper-case hex
/// digits. join() gives the bytes back, also where a character is incomplete,
/// and leaves symbols of other kinds as they are.
std::shared_ptr<const Segmenter> make_byte_segmenter();
/// The 256 symbols of the byte segmenter, byte 0 first.
const std::vector<std::string>& byte_symbols();

}  // namespace seqconv::internal
