#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <streambuf>

#include "base/json.h"
#include "cli/verbs/verbs.h"

/// One of several parts of a text file, in lines, however large the file is.
namespace seqconv::internal::verbs {

/// Bytes of a file.
struct FileRange {
  int64_t begin = 0;
  int64_t end = 0;  ///< behind the last
};

/// The lines of a part: those that begin within its share of the file's bytes,
/// which are as many for every part. It is empty where a longer line reaches
/// over the share. Error when the file cannot be read.
FileRange lines_of_part(const std::filesystem::path& file, InputPart part);

/// How many lines end in front of a byte of the file.
int64_t lines_before(const std::filesystem::path& file, int64_t end);

/// What tells a file from others of the same name.
struct FingerprintLimits {
  int64_t whole = int64_t{64} << 20;  ///< bytes; up to here all are compared
  int64_t samples = 1024;             ///< of larger files
  int64_t sample = 4096;              ///< bytes
};

/// The file's size and a checksum of its content or, where it is larger than
/// `limits.whole`, of evenly spread samples, and when it was changed last.
Json fingerprint(const std::filesystem::path& file, const FingerprintLimits& limits = {});

/// A range of a file as a stream; reading it needs a buffer's memory.
class RangeStream : public std::istream {
 public:
  /// Error when the file cannot be opened.
  RangeStream(const std::filesystem::path& file, FileRange range);

  /// The byte of the file that is read next.
  int64_t position() const { return buffer_.position(); }

 private:
  class Buffer : public std::streambuf {
   public:
    Buffer(const std::filesystem::path& file, FileRange range);
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() override;
    int64_t position() const { return next_ - (egptr() - gptr()); }

   protected:
    int_type underflow() override;

   private:
    int fd_;
    int64_t next_;  // byte of the file behind the buffer
    int64_t end_;
    std::array<char, 1 << 16> bytes_;
  };
  Buffer buffer_;
};

}  // namespace seqconv::internal::verbs
