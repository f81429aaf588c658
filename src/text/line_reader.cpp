#include "text/line_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/one_line.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

std::string hex(char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%02X", static_cast<unsigned char>(byte));
  return text.data();
}

}  // namespace

std::string clean_line(std::string_view line) {
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return one_line(line);
}

LineReader::LineReader(const RootedPath& path, BadBytes bad_bytes)
    : file_(std::make_unique<PackedText>(path)),
      stream_(file_.get()),
      name_(path.string()),
      bad_bytes_(bad_bytes) {}

LineReader::LineReader(
    std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before)
    : stream_(&stream), name_(std::move(name)), bad_bytes_(bad_bytes), line_number_(lines_before) {}

bool LineReader::next(std::string& line) {
  if (!next_with_end(line))
    return false;
  if (line.ends_with('\n'))
    line.pop_back();
  if (line.ends_with('\r'))
    line.pop_back();
  return true;
}

bool LineReader::read(std::string& line) {
  errno = 0;
  try {
    if (std::getline(*stream_, line))
      return true;
  } catch (const std::ios_base::failure&) {}  // as of streams that do not throw, it is bad
  SEQCONV_CHECK(
      !stream_->bad(),
      "cannot read '",
      name_,
      "' after line ",
      line_number_,
      ": ",
      std::strerror(errno));
  return false;
}

bool LineReader::next_with_end(std::string& line) {
  if (!read(line))
    return false;
  ++line_number_;
  if (line_number_ == 1)
    line.erase(0, line.size() - skip_byte_order_mark(line).size());
  check(line);
  if (!stream_->eof())
    line += '\n';
  return true;
}

void LineReader::check(std::string& line) {
  const size_t nul = line.find('\0');
  const size_t invalid = find_invalid_utf8(line);
  if (bad_bytes_ == BadBytes::kReplace) {
    replaced_lines_ += nul != std::string::npos || invalid != std::string::npos;
    if (nul != std::string::npos)
      std::replace(line.begin(), line.end(), '\0', ' ');
    if (invalid != std::string::npos)
      line = replace_invalid_utf8(line);
    return;
  }
  SEQCONV_CHECK(
      nul == std::string::npos || invalid < nul,
      where(),
      ": text was wanted, but byte ",
      nul + 1,
      " of the line is NUL");
  if (invalid == std::string::npos)
    return;
  const bool utf16 =
      line_number_ == 1 && (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF"));
  fail(
      where(),
      ": UTF-8 was wanted, but byte ",
      invalid + 1,
      " of the line is ",
      hex(line[invalid]),
      utf16 ? " (the file looks like UTF-16; convert it first)" : "");
}

std::string LineReader::where() const {
  return concat(name_, ":", line_number_);
}

}  // namespace seqconv::internal
