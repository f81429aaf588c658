#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace seqconv::internal::testing {

/// The folders of real text `names` in metric-checks of the folder that
/// SEQCONV_DATA names; none without that variable.
inline std::vector<std::filesystem::path> real_folders(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> folders;
  if (const char* data = std::getenv("SEQCONV_DATA"))
    for (const std::string& name : names)
      folders.push_back(std::filesystem::path(data) / "metric-checks" / name);
  return folders;
}

/// Made-up references and hypotheses with their scores, see make_made_up.py.
inline std::filesystem::path made_up_folder() {
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / "tests" / "metrics" / "made_up";
}

/// What the command writes to its standard output.
inline std::string output_of(const std::string& command) {
  std::string content;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[1 << 16];
  if (pipe != nullptr)
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      content.append(buffer, n);
  if (pipe == nullptr || ::pclose(pipe) != 0)
    ADD_FAILURE() << "failed: " << command;
  return content;
}

/// The lines of a text, or of the one packed with xz beside it.
inline std::vector<std::string> read_text(const std::filesystem::path& path) {
  std::string content;
  if (std::ifstream file(path, std::ios::binary); file)
    content.assign(std::istreambuf_iterator<char>(file), {});
  else
    content = output_of("xz -dc '" + path.string() + ".xz'");
  std::vector<std::string> lines;
  for (size_t start = 0; start < content.size();) {
    const size_t end = std::min(content.find('\n', start), content.size());
    lines.push_back(content.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace seqconv::internal::testing
