#include "text/segmenter.h"

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

std::string join_with_blanks(const std::vector<std::string>& symbols) {
  std::string text;
  for (const std::string& symbol : symbols) {
    if (!text.empty())
      text += ' ';
    text += symbol;
  }
  return text;
}

class WordSegmenter : public Segmenter {
 public:
  std::vector<std::string> split(std::string_view line) const override {
    const auto words = split_words(line);
    return {words.begin(), words.end()};
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    return join_with_blanks(symbols);
  }
  Subword kind() const override { return Subword::kNone; }
  std::string model() const override { return {}; }
};

class BpeSegmenter : public Segmenter {
 public:
  explicit BpeSegmenter(Bpe bpe) : bpe_(std::move(bpe)) {}

  std::vector<std::string> split(std::string_view line) const override {
    std::vector<std::string> pieces = bpe_.segment_words(split_words(line));
    // In codes of version 0.1 an empty one may follow a word's last piece.
    for (size_t i = 1; i < pieces.size(); ++i)
      if (pieces[i].empty())
        pieces[i - 1].resize(pieces[i - 1].size() - Bpe::kJoiner.size());
    std::erase(pieces, "");
    return pieces;
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    return join_bpe(join_with_blanks(symbols));
  }
  std::shared_ptr<const Segmenter> within(const HasSymbol& vocabulary) const override {
    return make_bpe_segmenter(Bpe::parse(bpe_.codes(), "codes", {.vocabulary = vocabulary}));
  }
  std::vector<std::string> characters(const std::string& symbol) const override {
    std::string_view piece = symbol;
    if (piece.size() > Bpe::kJoiner.size() && piece.ends_with(Bpe::kJoiner))
      piece.remove_suffix(Bpe::kJoiner.size());
    std::vector<std::string> symbols;
    for (std::string_view character : split_characters(piece)) {
      symbols.push_back(concat(character, Bpe::kJoiner));
      symbols.emplace_back(character);
    }
    return symbols;
  }
  std::string surface(const std::string& symbol) const override {
    return symbol.ends_with(Bpe::kJoiner) ? symbol.substr(0, symbol.size() - Bpe::kJoiner.size())
                                          : symbol;
  }
  Subword kind() const override { return Subword::kBpe; }
  std::string model() const override { return bpe_.codes(); }

 private:
  Bpe bpe_;
};

}  // namespace

std::shared_ptr<const Segmenter> make_word_segmenter() {
  return std::make_shared<WordSegmenter>();
}

std::shared_ptr<const Segmenter> make_bpe_segmenter(Bpe bpe) {
  return std::make_shared<BpeSegmenter>(std::move(bpe));
}

}  // namespace seqconv::internal
