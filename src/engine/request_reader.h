#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seqconv/base/options.h"
#include "seqconv/data/token_store.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/text/text_pipeline.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {

/// Translation requests, a buffer at a time, from a file or a stream: plain
/// lines, JSON objects, or the ids of fairseq's binarised data. Invalid UTF-8
/// becomes U+FFFD, NUL a blank.
class RequestReader {
 public:
  struct Buffer {
    std::vector<TranslationRequest> requests;
    /// What came in; {"text": line} for text, and for ids, with their text.
    std::vector<Json> objects;
    int64_t first_line = 1;  ///< number of the first request's line
  };

  /// Reads the file `input`, or `in` when it is "". `text` is the source side
  /// of the model; it must outlive the reader. UsageError for JSON objects in
  /// binarised data.
  RequestReader(
      const std::string& input,
      std::istream& in,
      bool json,
      const TextPipeline& text);

  /// Up to `count` requests; false when there are none left. Error names the
  /// line for what is not a valid JSON request.
  bool read(int64_t count, Buffer& buffer);

  /// Lines that held invalid UTF-8 or NUL so far.
  int64_t replaced_lines() const {
    return lines_ ? lines_->replaced_lines() : 0;
  }

 private:
  Json parse_object(const std::string& line) const;
  void add_line(const std::string& line, Buffer& buffer) const;
  void add_ids(Buffer& buffer);
  /// Whether there is one more; `line` is set for text.
  bool next(std::string& line);

  std::optional<LineReader> lines_;               // text
  std::shared_ptr<const TokenSource> sentences_;  // or binarised data
  int64_t taken_ = 0;                             // of sentences_
  std::string input_;
  const TextPipeline& text_;
  bool json_;
};

}  // namespace seqconv::engine
