#include "cli/configurations.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "cli/program_folder.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(configurations_folder(), none))
    if (entry.path().extension() == ".toml")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

fs::path configurations_folder() {
  return program_folder().parent_path() / "share" / "seqconv" / "configs";
}

fs::path find_configuration(const std::string& what, const std::string& name) {
  std::error_code none;
  const fs::path path = name;
  if (fs::exists(path, none) && !fs::is_directory(path, none))
    return path;
  if (path.has_parent_path() || path.extension() == ".toml")
    return path;
  const fs::path file = configurations_folder() / (name + ".toml");
  if (fs::is_regular_file(file, none))
    return file;
  const std::vector<std::string> all = names();
  const std::string nearest = nearest_word(name, all);
  std::string list;
  for (const std::string& known : all)
    list += concat(list.empty() ? " or one of " : ", ", known);
  fail_usage(
      what,
      " must be a configuration file",
      list,
      ", but got '",
      name,
      nearest.empty() ? "'" : concat("'; did you mean '", nearest, "'?"));
}

std::function<void(ModelOptions&)> read_preset(const std::string& name) {
  const fs::path file = find_configuration("--preset", name);
  const Json table = load_toml(file.string(), configurations_folder());
  if (!table.contains("model"))
    fail_usage(file.string(), " has no [model] section");
  return [model = table["model"]](ModelOptions& options) { read_options(model, "model", options); };
}

}  // namespace seqconv::internal::cli
