#include "cli/verbs/part_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/options.h"

namespace seqconv::internal::verbs {
namespace fs = std::filesystem;
namespace {

constexpr size_t kChunk = size_t{1} << 20;

[[noreturn]] void fail_reading(const fs::path& file) {
  const std::string why = std::strerror(errno);
  fail("cannot read '", file.string(), "': ", why);
}

/// Bytes of a file at any place.
class Bytes {
 public:
  explicit Bytes(const fs::path& file)
      : file_(file), fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0 || ::fstat(fd_, &info_) != 0) {
      close();
      fail_reading(file);
    }
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { close(); }

  int64_t size() const { return info_.st_size; }
  int64_t changed() const {  // nanoseconds
    return int64_t{info_.st_mtim.tv_sec} * 1'000'000'000 + info_.st_mtim.tv_nsec;
  }

  /// Up to `count` bytes, fewer at the end alone.
  std::span<const char> read(int64_t place, int64_t count) {
    bytes_.resize(static_cast<size_t>(count));
    size_t got = 0;
    while (got < bytes_.size()) {
      const ssize_t n =
          ::pread(fd_, bytes_.data() + got, bytes_.size() - got, place + static_cast<int64_t>(got));
      if (n < 0 && errno != EINTR)
        fail_reading(file_);
      if (n == 0)
        break;
      got += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return {bytes_.data(), got};
  }

 private:
  void close() const {
    if (fd_ >= 0)
      ::close(fd_);
  }

  fs::path file_;
  int fd_;
  struct stat info_ {};
  std::vector<char> bytes_;
};

/// Where the first line begins that does not begin in front of `place`.
int64_t line_start(Bytes& bytes, int64_t place) {
  if (place == 0)
    return 0;
  for (int64_t at = place - 1; at < bytes.size();) {
    const auto chunk = bytes.read(at, kChunk);
    const auto found = std::find(chunk.begin(), chunk.end(), '\n');
    if (found != chunk.end())
      return at + (found - chunk.begin()) + 1;
    if (chunk.empty())
      break;
    at += std::ssize(chunk);
  }
  return bytes.size();
}

/// index * size / count, which may be more than 64 bits on the way.
int64_t share(int64_t size, int64_t index, int64_t count) {
  return size / count * index + size % count * index / count;
}

}  // namespace

FileRange lines_of_part(const fs::path& file, InputPart part) {
  Bytes bytes(file);
  const int64_t size = bytes.size();
  return {
      line_start(bytes, share(size, part.index - 1, part.count)),
      line_start(bytes, share(size, part.index, part.count))};
}

int64_t lines_before(const fs::path& file, int64_t end) {
  Bytes bytes(file);
  int64_t lines = 0;
  for (int64_t at = 0; at < end;) {
    const auto chunk = bytes.read(at, std::min<int64_t>(kChunk, end - at));
    if (chunk.empty())
      break;
    lines += std::count(chunk.begin(), chunk.end(), '\n');
    at += std::ssize(chunk);
  }
  return lines;
}

Json fingerprint(const fs::path& file, const FingerprintLimits& limits) {
  Bytes bytes(file);
  const int64_t size = bytes.size();
  const bool whole = size <= limits.whole;
  const int64_t length = whole ? kChunk : limits.sample;
  const int64_t count = whole ? (size + length - 1) / length : limits.samples;
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = whole ? i * length : share(size - length, i, count - 1);
    sum = checksum(std::as_bytes(bytes.read(place, length)), sum);
  }
  Json print = {{"size", size}, {"checksum", checksum_text(sum)}};
  if (!whole)
    print["changed"] = bytes.changed();
  return print;
}

RangeStream::RangeStream(const fs::path& file, FileRange range)
    : std::istream(nullptr), buffer_(file, range) {
  rdbuf(&buffer_);
}

RangeStream::Buffer::Buffer(const fs::path& file, FileRange range)
    : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), next_(range.begin), end_(range.end) {
  if (fd_ < 0)
    fail_reading(file);
}

RangeStream::Buffer::~Buffer() {
  ::close(fd_);
}

RangeStream::Buffer::int_type RangeStream::Buffer::underflow() {
  const size_t wanted = static_cast<size_t>(std::min<int64_t>(std::ssize(bytes_), end_ - next_));
  ssize_t got = 0;
  do
    got = wanted == 0 ? 0 : ::pread(fd_, bytes_.data(), wanted, next_);
  while (got < 0 && errno == EINTR);
  if (got < 0)  // the stream is bad then, and whoever reads it says errno
    throw std::ios_base::failure("read");
  setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
  next_ += got;
  return got == 0 ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

}  // namespace seqconv::internal::verbs
