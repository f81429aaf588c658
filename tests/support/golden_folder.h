#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

/// Where golden values are. Free of torch, for every test program.
namespace seqconv::test {

/// $SEQCONV_GOLDEN, or shared/golden beside the source folder.
inline std::filesystem::path golden_folder() {
  const char* const folder = std::getenv("SEQCONV_GOLDEN");
  if (folder != nullptr && *folder != '\0')
    return folder;
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / ".." / "shared" / "golden";
}

/// Whether a run without golden values must fail instead of skip.
inline bool golden_required() {
  const char* const required = std::getenv("SEQCONV_GOLDEN_REQUIRED");
  return required != nullptr && std::string(required) == "1";
}

/// The golden operator files, in order of their names.
inline std::vector<std::filesystem::path> golden_operator_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_folder() / "operators"))
    if (entry.path().extension() == ".safetensors")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace seqconv::test

/// Leaves a test when there are no golden values: skipped with the reason, or
/// failed when SEQCONV_GOLDEN_REQUIRED=1.
#define SEQCONV_NEEDS_GOLDEN()                                              \
  do {                                                                      \
    const auto folder = ::seqconv::test::golden_folder() / "operators";     \
    if (!std::filesystem::is_directory(folder)) {                           \
      if (::seqconv::test::golden_required())                               \
        FAIL() << "golden values are required, but " << folder              \
               << " is not a folder";                                       \
      GTEST_SKIP() << "no golden values: " << folder << " is not a folder"; \
    }                                                                       \
  } while (false)
