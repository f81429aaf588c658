#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "text/segmenter.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kUnknownPiece = "<unk>";
/// U+FDD0, which is no character: it stands for the unknown piece while the
/// library joins pieces.
constexpr std::string_view kPlaceholder = "\xEF\xB7\x90";
class SentencePieceSegmenter : public Segmenter {
 public:
  SentencePieceSegmenter(
      const std::string& model, const std::string& name, HasSymbol vocabulary = nullptr)
      : model_(model), vocabulary_(std::move(vocabulary)) {
    load(processor_, name);
    if (vocabulary_)
      keep_to_vocabulary(name);
  }

  std::vector<std::string> split(std::string_view line) const override {
    const auto& processor = restricted_ ? *restricted_ : processor_;
    std::vector<std::string> pieces;
    const auto status = processor.Encode({line.data(), line.size()}, &pieces);
    SEQCONV_CHECK(status.ok(), "SentencePiece cannot split a line: ", status.error_message());
    if (!vocabulary_)
      return pieces;
    std::vector<std::string> known;
    for (std::string& piece : pieces) {
      if (vocabulary_(piece) || is_byte(piece))
        known.push_back(std::move(piece));
      else
        split_into_characters(piece, known);
    }
    return known;
  }

  std::shared_ptr<const Segmenter> within(const HasSymbol& vocabulary) const override {
    return std::make_shared<SentencePieceSegmenter>(model_, "SentencePiece", vocabulary);
  }

  std::vector<std::string> characters(const std::string& symbol) const override {
    if (is_byte(symbol) || is_defined_by_user(processor_.PieceToId(symbol)))
      return {};
    const auto parts = split_characters(symbol);
    return {parts.begin(), parts.end()};
  }

  std::vector<std::string> required() const override {
    std::vector<std::string> symbols;
    bool has_bytes = false;
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      has_bytes |= processor_.IsByte(id);
      if (processor_.IsByte(id) || is_defined_by_user(id))
        symbols.push_back(processor_.IdToPiece(id));
    }
    // A blank before an unknown character; as bytes it would be another sign.
    if (has_bytes)
      symbols.emplace_back(kBlankMark);
    return symbols;
  }

  std::string join(const std::vector<std::string>& symbols) const override {
    // The library would print its own sign for the unknown piece; any other
    // text that is no piece it takes as it is.
    std::vector<std::string> pieces = symbols;
    for (std::string& piece : pieces)
      if (piece == kUnknownPiece)
        piece = kPlaceholder;
    std::string text;
    const auto status = processor_.Decode(pieces, &text);
    SEQCONV_CHECK(status.ok(), "SentencePiece cannot join pieces: ", status.error_message());
    for (size_t at = 0; (at = text.find(kPlaceholder, at)) != std::string::npos;)
      text.replace(at, kPlaceholder.size(), kUnknownPiece);
    return text;
  }

  std::string surface(const std::string& symbol) const override {
    if (is_byte(symbol)) {
      const auto& bytes = byte_symbols();
      return {static_cast<char>(std::ranges::find(bytes, symbol) - bytes.begin())};
    }
    std::string text = symbol;
    for (size_t at = 0; (at = text.find(kBlankMark, at)) != std::string::npos;)
      text.erase(at, kBlankMark.size());
    return text;
  }

  Subword kind() const override { return Subword::kSentencePiece; }
  std::string model() const override { return model_; }

 private:
  using Processor = sentencepiece::SentencePieceProcessor;

  void load(Processor& processor, const std::string& name) const {
    // It throws too, of a piece without characters: not in words for users.
    std::string why = "its pieces cannot be read";
    try {
      const auto status = processor.LoadFromSerializedProto(model_);
      if (status.ok())
        return;
      why = status.error_message();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {}
    fail(name, ": a SentencePiece model was wanted, but: ", why);
  }

  /// Has the library split within the vocabulary. It cannot for models of words
  /// or characters, and its bytes then read as text, so that this processor
  /// joins nothing.
  void keep_to_vocabulary(const std::string& name) {
    std::vector<std::string> pieces;
    bytes_are_known_ = true;
    int bytes = 0;
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      std::string piece = processor_.IdToPiece(id);
      const bool known = vocabulary_(piece);
      bytes += processor_.IsByte(id);
      bytes_are_known_ &= known || !processor_.IsByte(id);
      if (known)
        pieces.push_back(std::move(piece));
    }
    bytes_are_known_ &= bytes > 0;
    restricted_ = std::make_unique<Processor>();
    load(*restricted_, name);
    if (!restricted_->SetVocabulary({pieces.begin(), pieces.end()}).ok())
      restricted_ = nullptr;
  }

  bool is_byte(const std::string& piece) const {
    return processor_.IsByte(processor_.PieceToId(piece));
  }

  /// The library does not say so, but scores these 0 and others below, but for
  /// the first merge of a BPE model, with which no harm is done.
  bool is_defined_by_user(int id) const {
    return processor_.GetScore(id) == 0 && !processor_.IsControl(id) && !processor_.IsUnknown(id) &&
        !processor_.IsByte(id);
  }

  /// Characters that the vocabulary has, bytes where they stand for others, and
  /// what is left in one piece.
  void split_into_characters(const std::string& piece, std::vector<std::string>& out) const {
    std::string unknown;
    const auto end_unknown = [&] {
      if (!unknown.empty())
        out.push_back(std::exchange(unknown, {}));
    };
    for (std::string_view view : split_characters(piece)) {
      const std::string character(view);
      if (vocabulary_(character)) {
        end_unknown();
        out.push_back(character);
      } else if (bytes_are_known_ && view != kBlankMark) {
        end_unknown();
        for (const char byte : view)
          out.push_back(byte_symbols()[static_cast<unsigned char>(byte)]);
      } else {
        unknown += view;
      }
    }
    end_unknown();
  }

  std::string model_;
  HasSymbol vocabulary_;  ///< null without within()
  bool bytes_are_known_ = false;
  Processor processor_;
  std::unique_ptr<Processor> restricted_;
};

}  // namespace

std::shared_ptr<const Segmenter> make_sentencepiece_segmenter(
    const std::string& model, const std::string& name) {
  return std::make_shared<SentencePieceSegmenter>(model, name);
}

}  // namespace seqconv::internal
