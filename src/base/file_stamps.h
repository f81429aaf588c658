#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace seqconv::internal {

/// Which files names led to, and when these were written last: whether names
/// lead to the same files later on. Their content is not read.
class FileStamps {
 public:
  /// Notes a file, which need not be there.
  void add(const std::filesystem::path& file);

  /// The first file that is gone, that another one has replaced, or that was
  /// written to; nothing where all are as they were.
  std::optional<std::filesystem::path> changed() const;
  /// The first file that was written to or cut where it lay. One that another
  /// file has replaced is none: whoever had it open keeps the old one.
  std::optional<std::filesystem::path> written() const;

 private:
  struct Stamp {
    bool there = false;
    uint64_t device = 0;
    uint64_t number = 0;  ///< of the inode
    int64_t size = 0;
    int64_t written = 0;  ///< ns

    bool operator==(const Stamp&) const = default;
    bool is_same_file(const Stamp& other) const;
  };
  static Stamp stamp_of(const std::filesystem::path& file);

  std::vector<std::pair<std::filesystem::path, Stamp>> files_;
};

}  // namespace seqconv::internal
