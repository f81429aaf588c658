#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/options.h"
#include "text/line_reader.h"

/// The model folders of every format version, and what the programs that wrote
/// them said about them: tests/model/folders/make_folders.py.
namespace seqconv::internal::testing {

inline std::filesystem::path version_folders() {
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / "tests/model/folders";
}

inline Json read_json_file(const std::filesystem::path& file) {
  return parse_json(read_file(file), file.string());
}

/// A folder, and config.json and expected.json in it.
struct VersionFolder {
  std::filesystem::path path;
  Json config;
  Json expected;

  std::filesystem::path state() const { return path / "training" / "state.safetensors"; }
  /// Whether `seqconv quantize` wrote its parameters.
  bool is_int8() const { return config.contains("weights"); }
  bool translates() const { return config.at("task") == "translation"; }
};

inline std::vector<VersionFolder> all_version_folders() {
  std::vector<VersionFolder> folders;
  for (const auto& entry : std::filesystem::directory_iterator(version_folders()))
    if (std::filesystem::exists(entry.path() / "config.json"))
      folders.push_back(
          {entry.path(),
           read_json_file(entry.path() / "config.json"),
           read_json_file(entry.path() / "expected.json")});
  return folders;
}

/// Lines of a text that the folders were made of: "train.source".
inline std::vector<std::string> version_text(const std::string& name) {
  std::vector<std::string> lines;
  LineReader reader(version_folders() / "text" / name);
  for (std::string line; reader.next(line);)
    lines.push_back(line);
  return lines;
}

}  // namespace seqconv::internal::testing
