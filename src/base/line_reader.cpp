#include "seqconv/base/line_reader.h"

#include <cerrno>
#include <cstring>

#include "seqconv/base/error.h"
#include "seqconv/base/utf8.h"

namespace seqconv {
namespace {

constexpr size_t kMaxLine = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(const std::filesystem::path& path)
    : path_(path), file_(std::fopen(path.c_str(), "rbe")) {
  const int error = errno;
  SEQCONV_CHECK(
      file_ != nullptr,
      "cannot read '",
      path.string(),
      "': ",
      std::strerror(error));
  std::error_code ignored;
  SEQCONV_CHECK(
      !std::filesystem::is_directory(path, ignored),
      "cannot read '",
      path.string(),
      "': a file was wanted, but it is a folder");
}

bool LineReader::next() {
  line_.clear();
  if (!fill())
    return false;
  ++number_;
  if (line_.ends_with('\n'))
    line_.pop_back();
  if (line_.ends_with('\r'))
    line_.pop_back();
  if (number_ == 1 && line_.starts_with(kByteOrderMark))
    line_.erase(0, kByteOrderMark.size());
  check();
  return true;
}

/// Appends up to and with the next LF; false when nothing was left.
bool LineReader::fill() {
  // Not getline(3): it would take a file without line ends into memory.
  for (int c; (c = ::getc_unlocked(file_.get())) != EOF;) {
    line_.push_back(static_cast<char>(c));
    if (c == '\n')
      return true;
    SEQCONV_CHECK(
        line_.size() <= kMaxLine,
        path_.string(),
        ":",
        number_ + 1,
        ": a line of more than 64 MiB; is this a text file?");
  }
  const int error = errno;
  SEQCONV_CHECK(
      std::ferror(file_.get()) == 0,
      path_.string(),
      ":",
      number_ + 1,
      ": cannot read on: ",
      std::strerror(error));
  return !line_.empty();
}

void LineReader::check() const {
  const size_t valid = valid_utf8_prefix(line_);
  SEQCONV_CHECK(
      valid == line_.size(),
      path_.string(),
      ":",
      number_,
      ": invalid UTF-8 at byte ",
      valid + 1);
  const size_t nul = line_.find('\0');
  SEQCONV_CHECK(
      nul == std::string::npos,
      path_.string(),
      ":",
      number_,
      ": a NUL character at byte ",
      nul + 1,
      "; is this a text file?");
}

}  // namespace seqconv
