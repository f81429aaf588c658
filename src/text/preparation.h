#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/moses.h"
#include "text/text_options.h"
#include "text/text_source.h"

namespace seqconv::internal {

/// Does what happens to a raw line before it is split into subwords: cleaning
/// (see clean_line), Moses tokens, lower case. Cheap to copy; safe to use from
/// several threads.
class Preparation {
 public:
  /// Cleaning alone.
  Preparation() = default;
  /// As the options want it for text of one language, which they name only
  /// when they name a tokenizer.
  Preparation(const TextOptions& options, const std::string& language);

  std::string apply(std::string_view line) const;
  /// Text of words that subwords were joined to: Moses tokens put together.
  std::string undo(std::string text) const;
  /// Does that to a word, or a part of one, alone.
  std::string undo_word(std::string word) const;
  /// Tells whether undo() does anything. Its result for a word depends on the
  /// next.
  bool is_undone() const { return detokenizer_ != nullptr; }
  /// Lists the pieces that lines are not to lose (text/slots.h): apply() is for text between them.
  const PieceKinds& protects() const { return protects_; }
  /// This preparation, for lines of which nothing is protected.
  Preparation unprotected() const;

 private:
  bool lowercase_ = false;
  PieceKinds protects_;
  std::shared_ptr<const MosesTokenizer> tokenizer_;
  std::shared_ptr<const MosesDetokenizer> detokenizer_;
};

/// A text file to learn from, and what happens to its texts.
struct TextFile {
  // Not explicit: a name alone is a file of lines that are only cleaned.
  template <std::convertible_to<std::filesystem::path> Path>
  TextFile(const Path& path, Preparation how = {}) : source(path), preparation(std::move(how)) {}
  TextFile(TextSource from, Preparation how)
      : source(std::move(from)), preparation(std::move(how)) {}

  TextSource source;
  Preparation preparation;
};

/// Files that are all prepared alike.
std::vector<TextFile> prepared_files(
    const std::vector<TextSource>& sources, const Preparation& preparation);

}  // namespace seqconv::internal
