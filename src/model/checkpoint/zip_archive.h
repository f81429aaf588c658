#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace seqconv::internal {

/// The files of a zip archive that are stored as they are (not compressed),
/// which is how PyTorch writes them; zip64 included. Everything is checked
/// against the archive's bytes before use.
class ZipArchive {
 public:
  /// True for bytes that begin as a zip archive does.
  static bool begins(std::span<const std::byte> bytes);

  /// Reads the directory; Error, beginning with `where`, when the archive is
  /// cut off or malformed. `bytes` must outlive the archive.
  ZipArchive(std::span<const std::byte> bytes, std::string where);

  /// Names and contents. The sums of the contents have not been checked.
  const std::map<std::string, std::span<const std::byte>>& files() const { return files_; }
  /// Error when the content of a file does not have the sum that the directory
  /// says: the archive is damaged.
  void check(const std::string& name) const;

 private:
  struct Entry;

  uint64_t find_end() const;
  void read_directory(uint64_t at, uint64_t end, uint64_t entries);
  Entry read_entry(uint64_t at, uint64_t extra, uint64_t extra_end) const;
  void add(const Entry& entry, std::string_view name);
  template <class T>
  T number(uint64_t offset) const;
  std::span<const std::byte> slice(uint64_t offset, uint64_t size, std::string_view what) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  std::map<std::string, std::span<const std::byte>> files_;
  std::map<std::string, uint32_t> sums_;
};

}  // namespace seqconv::internal
