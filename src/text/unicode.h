#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rooted_path.h"
#include "text/packed_text.h"

namespace seqconv::internal {

/// Position of the first byte that is not UTF-8, or npos when all are. Overlong
/// forms, surrogates and code points above U+10FFFF are not UTF-8.
size_t find_invalid_utf8(std::string_view text);

/// The text with every ill-formed sequence replaced by one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

/// Reads the code point at `position` and moves the position behind it. An
/// ill-formed sequence reads as U+FFFD. `position` must be below text.size().
char32_t next_code_point(std::string_view text, size_t& position);

/// The characters of a text, each as its UTF-8 bytes.
std::vector<std::string_view> split_characters(std::string_view text);

/// White space as Python's str.split sees it: Unicode's White_Space and the
/// separators U+001C to U+001F.
bool is_space(char32_t c);

/// True for text without words: empty, or white space (is_space) alone.
bool is_blank(std::string_view text);

/// The words between runs of white space (is_space); views into `text`.
std::vector<std::string_view> split_words(std::string_view text);

/// The lines of a text, each with its end, cut wherever Python's str.splitlines
/// cuts: behind LF, CRLF, CR, VT, FF, U+001C to U+001E, U+0085, U+2028 and
/// U+2029. Views into `text`.
std::vector<std::string_view> split_lines(std::string_view text);

/// Without white space (is_space) at its end, as Python's str.rstrip; a view.
std::string_view trim_end(std::string_view text);

/// Without the byte order mark that may begin a file.
std::string_view skip_byte_order_mark(std::string_view text);

/// Lower case by Unicode's full mapping in the root locale (no Turkish i; final
/// sigma by context). The same as Python's str.lower but for characters that
/// one of the two Unicode versions does not know.
std::string to_lower(std::string_view text);

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
  /// The same with its end: LF, CRLF or, where the text ends without, none.
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
