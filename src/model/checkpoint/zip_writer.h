#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace seqconv::internal {

/// Writes a zip archive of files that are stored as they are, each beginning at
/// a multiple of 64 bytes, so that they can be mapped.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path) : file_(path) {}

  void add(const std::string& name, std::span<const std::byte> content);
  /// Writes the directory; the archive then takes its name.
  void commit();

 private:
  struct Entry {
    std::string name;
    uint64_t size;
    uint64_t offset;
    uint32_t sum;
  };

  void write(const std::string& bytes);
  std::string directory_entry(const Entry& entry) const;

  AtomicFile file_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace seqconv::internal
