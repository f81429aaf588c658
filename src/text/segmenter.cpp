#include "seqconv/text/segmenter.h"

#include <mutex>
#include <unordered_map>

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
    std::vector<std::string> symbols;
    const std::lock_guard lock(mutex_);
    for (std::string_view word : split_words(line)) {
      const auto& pieces = cached(std::string(word));
      symbols.insert(symbols.end(), pieces.begin(), pieces.end());
    }
    return symbols;
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    return join_bpe(join_with_blanks(symbols));
  }
  Subword kind() const override { return Subword::kBpe; }
  std::string model() const override { return bpe_.codes(); }

 private:
  static constexpr size_t kCacheLimit = 1'000'000;  // words

  const std::vector<std::string>& cached(const std::string& word) const {
    if (const auto found = cache_.find(word); found != cache_.end())
      return found->second;
    if (cache_.size() >= kCacheLimit)
      cache_.clear();
    std::vector<std::string> pieces = bpe_.segment_word(word);
    for (size_t i = 0; i + 1 < pieces.size(); ++i)
      pieces[i] += Bpe::kJoiner;
    return cache_.emplace(word, std::move(pieces)).first->second;
  }

  Bpe bpe_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::vector<std::string>> cache_;
};

}  // namespace

std::shared_ptr<const Segmenter> make_word_segmenter() {
  return std::make_shared<WordSegmenter>();
}

std::shared_ptr<const Segmenter> make_bpe_segmenter(Bpe bpe) {
  return std::make_shared<BpeSegmenter>(std::move(bpe));
}

}  // namespace seqconv
