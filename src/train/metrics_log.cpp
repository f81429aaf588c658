#include "metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "seqconv/base/files.h"
#include "seqconv/base/options.h"

namespace seqconv {
namespace {

/// Bytes of the first `records` lines of `text`; counts those it finds.
size_t prefix_size(const std::string& text, int64_t records, int64_t& found) {
  size_t size = 0;
  for (found = 0; found < records; ++found) {
    const size_t end = text.find('\n', size);
    if (end == std::string::npos)
      break;
    size = end + 1;
  }
  return size;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t records)
    : path_(file) {
  size_t size = 0;
  if (records > 0 && std::filesystem::exists(file))
    size = prefix_size(read_file(file), records, records_);
  fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool open = fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size)) == 0;
  if (!open) {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0)
      ::close(fd_);
    fail("cannot write '", file.string(), "': ", why);
  }
}

MetricsLog::~MetricsLog() {
  ::close(fd_);
}

void MetricsLog::write(const Json& record) {
  const std::string line =
      record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ssize_t written = ::write(fd_, line.data(), line.size());
  SEQCONV_CHECK(
      written == static_cast<ssize_t>(line.size()),
      "cannot write '",
      path_.string(),
      "': ",
      written < 0 ? std::strerror(errno) : "the disk is full");
  ++records_;
}

}  // namespace seqconv
