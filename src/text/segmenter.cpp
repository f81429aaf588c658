#include "seqconv/text/segmenter.h"

#include "seqconv/text/unicode.h"

namespace seqconv {
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
    return bpe_.segment_words(split_words(line));
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    return join_bpe(join_with_blanks(symbols));
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

}  // namespace seqconv
