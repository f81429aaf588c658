#include "seqconv/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "atomic_file.h"
#include "seqconv/base/error.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

std::string reason() {
  return std::strerror(errno);
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Opens an ordinary file for reading and returns its size.
size_t open_for_reading(const fs::path& path, const Descriptor& fd) {
  SEQCONV_CHECK(fd.get() >= 0, "cannot read '", path.string(), "': ", reason());
  struct stat info {};
  SEQCONV_CHECK(
      ::fstat(fd.get(), &info) == 0,
      "cannot read '",
      path.string(),
      "': ",
      reason());
  SEQCONV_CHECK(
      !S_ISDIR(info.st_mode),
      "cannot read '",
      path.string(),
      "': a file was wanted, but it is a folder");
  return static_cast<size_t>(info.st_size);
}

}  // namespace

std::string read_file(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  content.reserve(open_for_reading(path, fd));
  char buffer[1 << 16];
  for (;;) {  // read to the end: pipes and devices have no size
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    SEQCONV_CHECK(n >= 0, "cannot read '", path.string(), "': ", reason());
    if (n == 0)
      return content;
    content.append(buffer, static_cast<size_t>(n));
  }
}

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  SEQCONV_CHECK(
      !error && fs::is_directory(path),
      "cannot create folder '",
      path.string(),
      "': ",
      error ? error.message() : "it is there and not a folder");
}

AtomicFile::AtomicFile(const fs::path& path)
    : path_(path),
      temporary_(path.string() + concat(".tmp-", ::getpid())),
      fd_(::open(
          temporary_.c_str(),
          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
          0644)) {
  SEQCONV_CHECK(fd_ >= 0, "cannot write '", path.string(), "': ", reason());
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd_, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    SEQCONV_CHECK(n > 0, "cannot write '", path_.string(), "': ", reason());
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  SEQCONV_CHECK(
      ::fsync(fd_) == 0,
      "cannot write '",
      path_.string(),
      "': ",
      reason());
  const int fd = std::exchange(fd_, -1);
  const bool closed = ::close(fd) == 0;
  if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(temporary_.c_str());
    fail("cannot write '", path_.string(), "': ", why);
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  size_ = open_for_reading(path, fd);
  if (size_ == 0)
    return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    size_ = 0;
    fail("cannot map '", path.string(), "': ", reason());
  }
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace seqconv
