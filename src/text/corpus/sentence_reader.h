#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/corpus/token_store.h"
#include "text/text_pipeline.h"
#include "text/text_source.h"

namespace seqconv::internal {

/// Reads sentences one by one from what may be either: texts, or ids in
/// fairseq's binarised data, where the file's name says so (holds_ids).
class SentenceReader {
 public:
  /// `vocabulary`: binarised ids must be below it. `bad_bytes` is for text.
  SentenceReader(
      const TextSource& file, int64_t vocabulary, BadBytes bad_bytes = BadBytes::kReject);
  /// Lines of a stream that outlives the reader; `name` is for messages, and
  /// `lines_before` are the lines in front of the stream, which count too.
  SentenceReader(
      std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before = 0);

  /// Moves on by a sentence; false when there is none left. Error for a line
  /// with bad bytes, where they are rejected, or without a text
  /// (TextSourceReader): count() has moved on then, and the next call goes on
  /// behind that line.
  bool next();
  /// Tells whether the sentences are lines.
  bool is_text() const { return lines_.has_value(); }
  /// The present line, of text.
  const std::string& line() const { return line_; }
  /// The present ids, of binarised data, without </s>. Error as of
  /// open_fairseq_data.
  std::vector<int32_t> ids() const;
  /// Sentences read so far: the number of the present one, from 1.
  int64_t count() const;
  /// "file:line" or "file: sentence number" of the present one.
  std::string where() const;
  /// Blank lines so far between JSON objects, which are passed over.
  int64_t blank_lines() const;
  /// Lines so far in which bad bytes were replaced.
  int64_t replaced_lines() const;

 private:
  std::string name_;
  std::optional<TextSourceReader> lines_;  // for text
  std::string line_;
  std::shared_ptr<const TokenSource> sentences_;  // for binarised data
  int64_t taken_ = 0;                             // of sentences_
};

/// The ids of the present sentence, without </s>; `text` encodes a line. Errors name the line.
std::vector<int32_t> encode_sentence(const SentenceReader& sentences, const TextPipeline& text);

}  // namespace seqconv::internal
