#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "base/rooted_path.h"
#include "text/packed_text.h"

namespace seqconv::internal {

/// A line as the model's text path sees it: one_line, without one trailing
/// carriage return.
std::string clean_line(std::string_view line);

/// Says what a LineReader does about NUL bytes and invalid UTF-8.
enum class BadBytes {
  kReject,   ///< training data: Error "file:line: ..."
  kReplace,  ///< translation input: NUL as a blank, the rest as U+FFFD
};

/// Reads text line by line, of any length. Lines end in LF or CRLF, the last
/// one may lack its end, a byte-order mark at the start is skipped.
class LineReader {
 public:
  /// Opens a file, packed or not; Error as of PackedText, then and by next().
  explicit LineReader(const RootedPath& path, BadBytes bad_bytes = BadBytes::kReject);
  /// Reads lines, and nothing ahead, from a stream that outlives the reader: what may be
  /// packed is a PackedText. `name` is for messages, and `lines_before` are the lines in
  /// front of the stream, which count too.
  LineReader(std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before = 0);

  /// The next line without its end; false at the end of the text.
  bool next(std::string& line);
  /// Reads one with its end: LF, CRLF or, where the text ends without, none.
  bool next_with_end(std::string& line);
  /// Number of the line that was returned last, from 1; before the first one,
  /// how many stand in front of the stream.
  int64_t line_number() const { return line_number_; }
  /// Lines so far in which kReplace has replaced something.
  int64_t replaced_lines() const { return replaced_lines_; }
  /// "file:line" of the line that was returned last.
  std::string where() const;

 private:
  bool read(std::string& line);
  void check(std::string& line);

  std::unique_ptr<PackedText> file_;
  std::istream* stream_;
  std::string name_;
  BadBytes bad_bytes_;
  int64_t line_number_ = 0;
  int64_t replaced_lines_ = 0;
};

}  // namespace seqconv::internal
