#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/text/moses.h"
#include "seqconv/text/text_options.h"

namespace seqconv {

/// What happens to a raw line before it is split into subwords: cleaning (see
/// clean_line), Moses tokens, lower case. Cheap to copy; safe to use from
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
  /// Whether undo() does anything. What it makes of a word depends on the next.
  bool is_undone() const { return detokenizer_ != nullptr; }

 private:
  bool lowercase_ = false;
  std::shared_ptr<const MosesTokenizer> tokenizer_;
  std::shared_ptr<const MosesDetokenizer> detokenizer_;
};

/// A text file to learn from, and what happens to its lines.
struct TextFile {
  // Not explicit: a name alone is a file that is only cleaned.
  TextFile(std::string file, Preparation how = {})
      : path(std::move(file)), preparation(std::move(how)) {}

  std::string path;
  Preparation preparation;
};

/// Files that are all prepared alike.
std::vector<TextFile> prepared_files(
    const std::vector<std::string>& paths,
    const Preparation& preparation);

}  // namespace seqconv
