#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace seqconv::internal::testing {

/// A new folder under the system's folder for temporary files; removed with
/// everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "seqconv-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      ADD_FAILURE() << "cannot make a temporary folder " << name;
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    // A new file: truncating an old one makes some file systems flush it.
    std::filesystem::remove(path_ / name);
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

  /// Number of entries directly in the folder.
  int64_t entries() const {
    return std::distance(
        std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace seqconv::internal::testing
