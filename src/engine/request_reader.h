#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "seqconv/base/options.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {

/// Standard input as translation requests, a buffer at a time: plain lines, or
/// JSON objects. Invalid UTF-8 becomes U+FFFD, NUL a blank.
class RequestReader {
 public:
  struct Buffer {
    std::vector<TranslationRequest> requests;
    std::vector<Json> objects;  ///< what came in; {"text": line} for text
    int64_t first_line = 1;     ///< number of the first request's line
  };

  RequestReader(std::istream& in, bool json);

  /// Up to `count` requests; false when there are none left. Error names the
  /// line for what is not a valid JSON request.
  bool read(int64_t count, Buffer& buffer);

  /// Lines that held invalid UTF-8 or NUL so far.
  int64_t replaced_lines() const { return lines_.replaced_lines(); }

 private:
  Json parse_object(const std::string& line) const;

  LineReader lines_;
  bool json_;
};

}  // namespace seqconv::engine
