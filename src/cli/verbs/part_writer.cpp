#include "cli/verbs/part_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace seqconv::internal::verbs {
namespace {

constexpr int kSaveShare = 50;  // of the time may be spent on records

}  // namespace

PartWriter::PartWriter(const PartsFolder& folder, PartProgress progress)
    : folder_(folder),
      progress_(std::move(progress)),
      fd_(::open(folder.file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  const off_t size = fd_ < 0 ? -1 : ::lseek(fd_, 0, SEEK_END);
  if (size < 0)
    fail_writing();
  SEQCONV_CHECK(
      size >= progress_.bytes,
      "'",
      folder.file().string(),
      "' should have ",
      progress_.bytes,
      " bytes or more by its record, but has ",
      size,
      ": delete the record, ",
      folder.file().stem().string(),
      ".json beside it, to translate this part anew");
  // What no record counts is written once more.
  if (::ftruncate(fd_, progress_.bytes) != 0 || ::lseek(fd_, progress_.bytes, SEEK_SET) < 0)
    fail_writing();
}

PartWriter::~PartWriter() {
  if (fd_ >= 0)
    ::close(fd_);
}

void PartWriter::fail_writing() const {
  const std::string why = std::strerror(errno);
  fail(
      "cannot write '",
      folder_.file().string(),
      "': ",
      why,
      "; once that is cured, the same command goes on");
}

void PartWriter::write_out() {
  const std::string_view all = out_.view();
  for (size_t done = 0; done < all.size();) {
    const ssize_t n = ::write(fd_, all.data() + done, all.size() - done);
    if (n < 0 && errno != EINTR)
      fail_writing();
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  progress_.bytes += std::ssize(all);
  out_.str({});
}

void PartWriter::reached(const PartProgress& progress) {
  write_out();
  const int64_t bytes = progress_.bytes;
  progress_ = progress;
  progress_.bytes = bytes;
  if (progress_.done || Clock::now() >= next_save_)
    save();
}

void PartWriter::save() {
  const auto start = Clock::now();
  struct stat ours {};
  struct stat found {};
  SEQCONV_CHECK(
      ::fstat(fd_, &ours) == 0 && ::stat(folder_.file().c_str(), &found) == 0 &&
          ours.st_ino == found.st_ino && ours.st_dev == found.st_dev,
      "'",
      folder_.file().string(),
      "' was deleted or replaced while it was written");
  // The bytes reach the disk before the record that counts them.
  if (::fsync(fd_) != 0 && errno != EINVAL)
    fail_writing();
  folder_.save(progress_);
  const auto end = Clock::now();
  next_save_ = end + kSaveShare * (end - start);
}

void PartWriter::finish() {
  PartProgress progress = progress_;
  progress.done = true;
  reached(progress);
}

}  // namespace seqconv::internal::verbs
