#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// Stands between a file's name and the process that writes it.
constexpr std::string_view kMark = ".tmp-";

/// Bytes that go to the system at a time.
constexpr size_t kPiece = size_t{16} << 20;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

bool is_same_file(const fs::path& path, const struct stat& info) {
  struct stat other {};
  return ::stat(path.c_str(), &other) == 0 && other.st_dev == info.st_dev &&
      other.st_ino == info.st_ino;
}

/// Neither a link nor a folder: those are nobody's unfinished file.
bool is_regular(const fs::path& file) {
  std::error_code none;
  return fs::is_regular_file(fs::symlink_status(file, none));
}

/// Of processes that have ended.
void remove_leftovers_of(const fs::path& target) {
  const std::string name = target.filename().string();
  remove_unfinished_files(folder_of(target), [&](const UnfinishedFile& file) {
    return file.name == name && !process_lives(file.process);
  });
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(behind_links(path)) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (!there && errno == ELOOP)
    fail_with_reason(errno);
  SEQCONV_CHECK(
      !there || !S_ISDIR(info.st_mode), "cannot write '", path.string(), "': it is a folder");
  // Renaming onto a device would replace it by an ordinary file, and a link of
  // /proc to a file that was deleted leads nowhere.
  const bool replace = !there || (S_ISREG(info.st_mode) && is_same_file(target_, info));
  if (!replace)
    target_ = path;
  temporary_ = replace ? fs::path(concat(target_.string(), kMark, ::getpid())) : target_;
  if (replace && is_regular(temporary_))  // of an ended process of this number
    ::unlink(temporary_.c_str());
  under_way_.begin(replace ? temporary_.c_str() : "");
  fd_ = ::open(
      temporary_.c_str(), O_WRONLY | O_CLOEXEC | (replace ? O_CREAT | O_EXCL : O_TRUNC), 0644);
  if (fd_ < 0)
    fail_with_reason(errno);
  if (replace)
    remove_leftovers_of(target_);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  if (temporary_ != target_)
    ::unlink(temporary_.c_str());
}

void AtomicFile::fail_with_reason(int error) const {
  fail("cannot write '", path_.string(), "': ", std::strerror(error));
}

void AtomicFile::write(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd_, bytes, std::min(size, kPiece));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail_with_reason(errno);
    bytes += n;
    size -= static_cast<size_t>(n);
    size_ += n;
    under_way_.grew();
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

void AtomicFile::flush_pieces() {
  constexpr auto kPieceLength = static_cast<int64_t>(kPiece);
  constexpr unsigned kHow =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (int64_t at = 0; at < size_; at += kPieceLength) {
    if (::sync_file_range(fd_, at, kPieceLength, kHow) == 0) {
      under_way_.grew();
      continue;
    }
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT)
      fail_with_reason(errno);
    return;  // the file system knows no pieces
  }
}

void AtomicFile::flush() {
  flush_pieces();
  // Devices and pipes cannot be flushed and say so with EINVAL.
  if (::fsync(fd_) != 0 && errno != EINVAL)
    fail_with_reason(errno);
}

void AtomicFile::commit() {
  flush();
  const int fd = std::exchange(fd_, -1);
  const bool closed = ::close(fd) == 0;
  if (temporary_ == target_ && closed) {
    under_way_.end();
    return;
  }
  if (!closed || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    if (temporary_ != target_)
      ::unlink(temporary_.c_str());
    fail_with_reason(error);
  }
  under_way_.end();
  // The new name is on the disk when its folder is; some file systems refuse.
  const int parent = ::open(folder_of(target_).c_str(), O_RDONLY | O_CLOEXEC);
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

void remove_unfinished_files(
    const fs::path& folder, const std::function<bool(const UnfinishedFile&)>& unwanted) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto file = unfinished_file(at->path());
    if (file && unwanted(*file) && is_regular(at->path()))
      found.push_back(at->path());
  }
  for (const fs::path& file : found)
    if (!fs::remove(file, error) && error)
      log_warning("cannot remove the unfinished file '", file.string(), "': ", error.message());
}

}  // namespace seqconv::internal
