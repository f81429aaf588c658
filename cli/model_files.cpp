#include "model_files.h"

#include "seqconv/base/error.h"
#include "seqconv/base/files.h"

namespace seqconv::cli {
namespace fs = std::filesystem;
namespace {

// Checkpoints lie in training/checkpoints of their model's folder.
constexpr int kLevelsAbove = 4;

fs::path folder_above(const fs::path& file) {
  fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  for (int level = 0; level < kLevelsAbove; ++level) {
    if (fs::exists(folder / "config.json"))
      return folder;
    folder = folder.parent_path();
  }
  fail(
      "'",
      file.string(),
      "' is not inside a model folder: no config.json beside or above it");
}

}  // namespace

ModelFiles find_model(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    fail("no model '", path.string(), "': there is no such file or folder");
  ModelFiles files;
  if (fs::is_directory(path)) {
    files.folder = path;
    files.checkpoint = path / "model.safetensors";
    if (!fs::is_regular_file(path / "config.json"))
      fail(
          "'",
          path.string(),
          "' is not a model folder: it has no config.json");
  } else {
    files.folder = folder_above(path);
    files.checkpoint = path;
  }
  const fs::path config = files.folder / "config.json";
  files.config = parse_json(read_file(config), config.string());
  if (!files.config.is_object())
    fail(
        config.string(),
        ": must be an object, but got ",
        detail::show_json(files.config));
  return files;
}

}  // namespace seqconv::cli
