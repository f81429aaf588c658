#include "text/preparation.h"

#include "base/characters.h"
#include "base/error.h"
#include "text/line_reader.h"

namespace seqconv::internal {

Preparation::Preparation(const TextOptions& options, const std::string& language)
    : lowercase_(options.lowercase), protects_(options.protect) {
  switch (options.tokenizer) {
    case Tokenizer::kNone:
      return;
    case Tokenizer::kMoses:
      tokenizer_ = std::make_shared<MosesTokenizer>(
          language,
          MosesOptions{.escape = options.moses_escape, .split_dashes = options.moses_split_dashes});
      detokenizer_ = std::make_shared<MosesDetokenizer>(language);
      return;
  }
  fail("unknown tokenizer ", static_cast<int>(options.tokenizer));
}

std::string Preparation::apply(std::string_view line) const {
  std::string text = clean_line(line);
  if (tokenizer_)
    text = tokenizer_->tokenize(text);
  return lowercase_ ? to_lower(text) : text;
}

Preparation Preparation::unprotected() const {
  Preparation other = *this;
  other.protects_.clear();
  return other;
}

std::string Preparation::undo(std::string text) const {
  return detokenizer_ ? detokenizer_->detokenize(text) : text;
}

std::string Preparation::undo_word(std::string word) const {
  return detokenizer_ ? MosesDetokenizer::unescape(word) : word;
}

std::vector<TextFile> prepared_files(
    const std::vector<TextSource>& sources, const Preparation& preparation) {
  std::vector<TextFile> files;
  for (const TextSource& source : sources)
    files.emplace_back(source, preparation);
  return files;
}

}  // namespace seqconv::internal
