#pragma once

#include <cstddef>
#include <filesystem>

namespace seqconv {

/// A file that appears under its name only when commit() has put all of it on
/// the disk; until then, and after an error, the old file stays.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(const void* data, size_t size);
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_;
};

}  // namespace seqconv
