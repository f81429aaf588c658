#include "base/files.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapping_faults.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxWhole = size_t{4} << 30;

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

size_t size_of(const fs::path& path, const Descriptor& fd) {
  struct stat info {};
  SEQCONV_CHECK(::fstat(fd.get(), &info) == 0, "cannot read '", path.string(), "': ", reason());
  return static_cast<size_t>(info.st_size);
}

}  // namespace

std::string read_file(const RootedPath& path) {
  const Descriptor fd(path.open(/*or_stream=*/true));
  const size_t size = size_of(path, fd);
  std::string content;
  if (size <= kMaxWhole)
    content.reserve(size);
  char buffer[1 << 16];
  for (;;) {  // read to the end: pipes and devices have no size
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    SEQCONV_CHECK(n >= 0, "cannot read '", path.string(), "': ", reason());
    if (n == 0)
      return content;
    content.append(buffer, static_cast<size_t>(n));
    SEQCONV_CHECK(
        content.size() <= kMaxWhole && size <= kMaxWhole,
        "cannot read '",
        path.string(),
        "': more than 4 GiB, too large to be read whole");
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

fs::path behind_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // the system's own limit
  fs::path file = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code none;
    const fs::path target = fs::read_symlink(file, none);
    if (none)
      return file;
    file = file.parent_path() / target;  // the target alone when absolute
  }
  return path;
}

fs::path resolve_path(const fs::path& path) {
  std::error_code error;
  fs::path file = fs::absolute(behind_links(path), error);
  if (error)
    file = path;
  fs::path whole = fs::weakly_canonical(file, error);
  if (error)  // folders that may not be searched
    whole = file.lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

MappedFile::MappedFile(const RootedPath& path) : path_(path.path()) {
  const Descriptor fd(path.open());
  size_ = size_of(path_, fd);
  if (size_ == 0)
    return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    const std::string why = reason();
    size_ = 0;
    fail("cannot map '", path.string(), "': ", why);
  }
  data_ = static_cast<const std::byte*>(mapped);
  note_mapping(data_, size_, path_);
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
  if (data_ == nullptr)
    return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release() const {
  if (data_ != nullptr)
    ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

}  // namespace seqconv::internal
