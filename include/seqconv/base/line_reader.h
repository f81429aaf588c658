#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace seqconv {

/// Reads a UTF-8 text file line by line, in memory of one line. A byte-order
/// mark at the start is left out, lines may end in LF or CRLF, the last one in
/// nothing. Errors: "FILE:LINE: invalid UTF-8 at byte N" (N from 1), a NUL
/// character, a line of more than 64 MiB (no text file), a failing disk.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// Moves to the next line; false at the end of the file.
  bool next();
  /// The present line without its end; valid until the next call of next().
  std::string_view line() const { return line_; }
  /// The number of the present line, from 1; after the end the number of lines.
  int64_t number() const { return number_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool fill();
  void check() const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string line_;
  int64_t number_ = 0;
};

}  // namespace seqconv
