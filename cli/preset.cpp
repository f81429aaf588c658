#include "preset.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "program_folder.h"
#include "seqconv/base/error.h"
#include "seqconv/base/options.h"

namespace seqconv::cli {
namespace fs = std::filesystem;
namespace {

/// Where the configurations lie beside an installed or built program.
fs::path preset_folder() {
  return program_folder().parent_path() / "share" / "seqconv" / "configs";
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(preset_folder(), none))
    if (entry.path().extension() == ".toml")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_preset(const std::string& name) {
  std::error_code none;
  if (fs::is_regular_file(name, none))
    return name;
  const fs::path file = preset_folder() / (name + ".toml");
  if (name.find('/') == std::string::npos && fs::is_regular_file(file, none))
    return file;
  std::string list;
  for (const std::string& known : preset_names())
    list += concat(list.empty() ? "" : ", ", known);
  fail_usage(
      "--preset must be a configuration file or one of ",
      list,
      ", but got '",
      name,
      "'");
}

}  // namespace

std::function<void(ModelOptions&)> read_preset(const std::string& name) {
  const fs::path file = find_preset(name);
  const Json table = load_toml(file.string());
  if (!table.contains("model"))
    fail_usage(file.string(), " has no [model] section");
  return [model = table["model"]](ModelOptions& options) {
    read_options(model, "model", options);
  };
}

}  // namespace seqconv::cli
