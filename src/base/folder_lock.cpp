#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"

namespace seqconv::internal {
namespace {

int lock_file(int fd) {
  int result = 0;
  do
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result;
}

/// The process that signed the file, or 0.
int signature(int fd) {
  char text[32];
  const ssize_t size = ::pread(fd, text, sizeof text, 0);
  int process = 0;
  if (size > 0)
    std::from_chars(text, text + size, process);
  return process;
}

/// The holder in words. Between its lock and its signature lies a moment, in
/// which the file may still name a process that has ended.
std::string holder(int fd) {
  for (int tries = 0; tries < 50; ++tries) {
    const int process = signature(fd);
    if (process > 0 && process_lives(process))
      return concat("process ", process);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return "a process of another machine";
}

}  // namespace

FolderLock::FolderLock(
    const std::filesystem::path& folder, const std::filesystem::path& file, const std::string& work)
    : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (fd_ < 0) {
    const std::string why = std::strerror(errno);
    fail("cannot write '", file.string(), "': ", why);
  }
  if (lock_file(fd_) == 0) {
    held_ = true;
    sign();
    return;
  }
  const int error = errno;
  if (error == EWOULDBLOCK) {
    const std::string other = holder(fd_);
    ::close(fd_);
    fail(
        "the folder '",
        folder.string(),
        "' is in use: ",
        other,
        " is ",
        work,
        " in it (and holds '",
        file.string(),
        "'); wait for it, stop it, or choose another folder");
  }
  log_warning(
      "cannot lock '",
      file.string(),
      "' (",
      std::strerror(error),
      "): take care that no other process is ",
      work,
      " in '",
      folder.string(),
      "'");
}

FolderLock::~FolderLock() {
  // Closing unlocks; a name that is no longer true goes first.
  if (held_ && ::ftruncate(fd_, 0) != 0)
    held_ = false;
  ::close(fd_);
}

void FolderLock::sign() {
  const std::string text = std::to_string(::getpid()) + "\n";
  const bool signed_whole = ::ftruncate(fd_, 0) == 0 &&
      ::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!signed_whole)  // the lock is what counts
    log_warning("cannot write the number of the process into its lock file");
}

}  // namespace seqconv::internal
