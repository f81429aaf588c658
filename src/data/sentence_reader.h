#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seqconv/data/corpus_side.h"
#include "seqconv/data/token_store.h"
#include "seqconv/text/unicode.h"

/// What the corpora do alike while they read their files.
namespace seqconv {

/// Reads one file of a side sentence by sentence: lines of text, encoded, or
/// binarised ids. Errors get file and line in front, an interruption passes as
/// it is.
class SentenceReader {
 public:
  SentenceReader(const CorpusSide& side, const std::string& file);

  /// Moves on by a sentence; false when there is none left.
  bool next();
  /// The ids of the present sentence, without </s>.
  std::vector<int32_t> ids() const;
  /// Whether the present sentence is a line of white space alone.
  bool is_blank_line() const;
  /// Sentences read so far.
  int64_t count() const;

 private:
  std::vector<int32_t> checked(std::vector<int32_t> ids) const;

  const CorpusSide& side_;
  const std::string& file_;
  std::optional<LineReader> lines_;  // for text
  std::string line_;
  std::shared_ptr<const TokenSource> sentences_;  // for binarised data
  int64_t count_ = 0;                             // of sentences_
};

/// The names of files for a message: 'a', 'b'.
std::string list_files(const std::vector<std::string>& files);

}  // namespace seqconv
