#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace seqconv::testing {

/// Folder of real text: SEQCONV_DATA, or ../shared/data beside the source.
inline std::filesystem::path data_folder() {
  if (const char* folder = std::getenv("SEQCONV_DATA"))
    return folder;
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / ".." / "shared" / "data";
}

/// Ends the test when the folder is not there: skipped, or failed where
/// SEQCONV_GOLDEN_REQUIRED=1.
#define SEQCONV_REQUIRE_DATA(folder)                                 \
  do {                                                               \
    if (!std::filesystem::is_directory(folder)) {                    \
      const char* required = std::getenv("SEQCONV_GOLDEN_REQUIRED"); \
      if (required != nullptr && std::string(required) == "1")       \
        FAIL() << "no real text in " << (folder);                    \
      GTEST_SKIP() << "no real text in " << (folder);                \
    }                                                                \
  } while (false)

/// The lines of a text packed with xz.
inline std::vector<std::string> read_packed(const std::filesystem::path& path) {
  const std::string command = "xz -dc '" + path.string() + "'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::vector<std::string> lines;
  std::string content;
  char buffer[1 << 16];
  if (pipe != nullptr)
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      content.append(buffer, n);
  if (pipe == nullptr || ::pclose(pipe) != 0)
    ADD_FAILURE() << "cannot unpack " << path;
  for (size_t start = 0; start < content.size();) {
    const size_t end = std::min(content.find('\n', start), content.size());
    lines.push_back(content.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace seqconv::testing
