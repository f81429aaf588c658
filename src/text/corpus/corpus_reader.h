#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/characters.h"
#include "text/corpus/corpus_side.h"
#include "text/corpus/sentence_reader.h"

/// What the corpora do alike while they read their files.
namespace seqconv::internal {

/// The sentences of one file of a side as ids. Errors get file and line in
/// front, an interruption passes as it is.
class CorpusReader : public SentenceReader {
 public:
  /// `side` must outlive the reader.
  CorpusReader(const CorpusSide& side, const TextSource& file)
      : SentenceReader(file, side.vocabulary), side_(side) {}

  /// The ids of the present sentence, without </s>: a line encoded, or
  /// binarised ids that the side has checked.
  std::vector<int32_t> ids() const;
  /// The ids of what slots carry of the present line; of a binarised sentence its own.
  std::vector<int32_t> ids(const LineInSlots& line) const;
  /// Whether the present sentence is a line of white space alone.
  bool is_blank_line() const { return is_text() && is_blank(line()); }

 private:
  const CorpusSide& side_;
};

/// The names of files for a message: 'a', 'b'.
std::string list_files(const std::vector<TextSource>& files);

}  // namespace seqconv::internal
