#include "seqconv/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "seqconv/base/error.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

/// Stands between a file's name and the process that writes it.
constexpr std::string_view kMark = ".tmp-";

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : path_(path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  SEQCONV_CHECK(
      !there || !S_ISDIR(info.st_mode),
      "cannot write '",
      path.string(),
      "': it is a folder");
  // Renaming onto a device would replace it by an ordinary file.
  const bool replace = !there || S_ISREG(info.st_mode);
  temporary_ =
      replace ? fs::path(concat(path.string(), kMark, ::getpid())) : path;
  fd_ = ::open(
      temporary_.c_str(),
      O_WRONLY | O_CLOEXEC | (replace ? O_CREAT | O_TRUNC : 0),
      0644);
  if (fd_ < 0)
    fail_with_reason(errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  if (temporary_ != path_)
    ::unlink(temporary_.c_str());
}

void AtomicFile::fail_with_reason(int error) const {
  fail("cannot write '", path_.string(), "': ", std::strerror(error));
}

void AtomicFile::write(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd_, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail_with_reason(errno);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::write_at(int64_t offset, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::pwrite(fd_, bytes, size, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail_with_reason(errno);
    bytes += n;
    offset += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::flush() {
  // Devices and pipes cannot be flushed and say so with EINVAL.
  if (::fsync(fd_) != 0 && errno != EINVAL)
    fail_with_reason(errno);
}

void AtomicFile::commit() {
  flush();
  const int fd = std::exchange(fd_, -1);
  const bool closed = ::close(fd) == 0;
  if (temporary_ == path_ && closed)
    return;
  if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    if (temporary_ != path_)
      ::unlink(temporary_.c_str());
    fail_with_reason(error);
  }
  // The new name is on the disk when its folder is; some file systems refuse.
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int parent = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (parent >= 0) {
    ::fsync(parent);
    ::close(parent);
  }
}

std::optional<UnfinishedFile> unfinished_file(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t mark = name.rfind(kMark);
  if (mark == std::string::npos || mark == 0)
    return {};
  UnfinishedFile file{name.substr(0, mark)};
  const char* begin = name.data() + mark + kMark.size();
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(begin, end, file.process);
  if (parsed.ec != std::errc() || parsed.ptr != end || file.process <= 0)
    return {};
  return file;
}

bool process_lives(int process) {
  return ::kill(process, 0) == 0 || errno == EPERM;
}

}  // namespace seqconv
