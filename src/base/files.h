#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/rooted_path.h"

namespace seqconv::internal {

/// The whole file as bytes, up to 4 GiB; a path that the user gave may be a
/// pipe too. Error names the file and the system's reason, or what was wanted.
std::string read_file(const RootedPath& path);

/// Writes to a temporary file beside `path`, flushes it to disk and renames it:
/// after a crash or a full disk the old content is still there. Error names the
/// file and the system's reason; the temporary file is removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Creates a folder with its parents; Error when that fails or when the path
/// is there and not a folder.
void create_folder(const std::filesystem::path& path);

/// Finds where a writer of `path` would write: behind symbolic links, its own
/// last one too, whether or not a file is there.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// behind_links, absolute and without "." and "..": the path as it will be when
/// missing folders have been made. It has no slash at its end.
std::filesystem::path resolve_path(const std::filesystem::path& path);

/// A read-only memory mapping of an ordinary file. An empty file maps to an
/// empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const RootedPath& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  /// Lets the system take back the memory of pages that were read; they are
  /// read again when needed.
  void release() const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace seqconv::internal
